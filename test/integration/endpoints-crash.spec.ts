import { EndpointService } from '@perch/endpoints';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Crash, type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

/** Runs it again, as a new process would, when the old one died in it. */
async function surviving(world: FleetWorld, steps: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await steps();
      return;
    } catch (error) {
      if (!(error instanceof Crash) || attempt > 3) throw error;
      await world.restart();
    }
  }
}

describe.each(['before commit', 'after commit'] as const)('a control plane killed %s', (when) => {
  let world: FleetWorld;
  let agent: FakeAgent;
  let router: FakeRouter;
  beforeAll(async () => {
    world = await FleetWorld.start();
    agent = await world.agent('s1');
    router = await world.router('r1');
    // Invariant: no model is unloaded while the router could still send to it.
    agent.beforeUnload = (names) => {
      const targets = Object.values(router.table?.endpoints ?? {}).flatMap((route) => route.targets);
      expect(targets.filter(({ tritonModel }) => names.includes(tritonModel))).toEqual([]);
    };
  });
  afterAll(() => world.close());

  const converge = () => surviving(world, () => world.converge([agent], [router]));

  /** Add, publish, update, fail, publish again, remove: `look` sees each stage. */
  async function life(name: string, model: string): Promise<string[]> {
    const seen: string[] = [];
    const look = async () => {
      await converge();
      seen.push(`${(await world.states(name)).join(', ')} | ${router.arms(name)}`);
    };
    await surviving(world, () => world.apply(ruleSpec(name, model)));
    await world.versions.put(model);
    await look();
    await world.versions.put(model);
    await look();
    agent.behaviour.set(`${model.split('/')[1]}-v3-`, 'bad bytes');
    await world.versions.put(model);
    await look();
    await world.versions.put(model);
    await look();
    await surviving(world, () => world.get(EndpointService).remove(operator, name).catch(onlyGone));
    await converge();
    seen.push(String(agent.models.filter((one) => one.startsWith(`${model.split('/')[1]}-`))));
    return seen;
  }
  /** Killed after its commit, the removal was done all the same. */
  const onlyGone = (error: unknown) => {
    if ((error as { code?: string }).code !== 'not_found') throw error;
  };

  it('after any of its transactions, the same state is reached', async () => {
    const expected = ['1 ready | 1 1', '2 ready | 2 1', '3 failed, 2 ready | 2 1', '4 ready | 4 1', ''];
    expect(await life('calm', 'nlp/calm')).toEqual(expected);
    let crashes = 0;
    // Every eighth transaction, two sets of them; together with the pure plans' tests that is every kind of step.
    for (let n = when === 'before commit' ? 1 : 5; ; n += 8) {
      const fault = world.crashAt(n, when);
      const seen = await life(`e${n}`, `nlp/e${n}`);
      fault.stop();
      if (!fault.crashed()) break;
      crashes += 1;
      expect(seen, `crash at transaction ${n}`).toEqual(expected);
    }
    expect(crashes).toBeGreaterThan(6);
  }, 240_000);
});
