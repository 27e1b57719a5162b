import { Transactions } from '@perch/platform/database';
import { RolloutApply, RolloutService } from '@perch/promotion';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Crash } from '../support/fleet.ts';
import { progressive, RolloutStand } from './rollout-stand.ts';

let stand: RolloutStand;
beforeAll(async () => {
  stand = await RolloutStand.start();
  stand.bad.add(3);
});
afterAll(() => stand.close());

/** Each step of the promotion loop dies twice: just before its commit, and when it is done again, just after. */
function crashAtEachStep(): { crashes: () => number; stop: () => void } {
  const transactions = stand.world.get(Transactions);
  const applier = stand.world.get(RolloutApply);
  const { apply } = applier;
  const run = transactions.run.bind(transactions);
  let writes = 0;
  let crashes = 0;
  applier.apply = async (...parts) => {
    await apply.apply(applier, parts);
    writes += 1;
    if (writes % 2 === 1) {
      crashes += 1;
      throw new Crash();
    }
  };
  transactions.run = async (steps) => {
    const before = writes;
    const result = await run(steps);
    if (writes === before) return result;
    crashes += 1;
    throw new Crash();
  };
  return {
    crashes: () => crashes,
    stop: () => Object.assign(transactions, { run }) && Object.assign(applier, { apply }),
  };
}

/** Version 2 is promoted, version 3 is not; whoever dies over it is started again. */
async function life(name: string): Promise<string[]> {
  const surviving = async (steps: () => Promise<unknown>): Promise<void> => {
    for (;;) {
      try {
        await steps();
        return;
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
        await stand.world.restart();
      }
    }
  };
  const model = `nlp/${name}`;
  await stand.world.apply(progressive(name, model, { weightsPercent: [10] }));
  const publish = async (done: () => Promise<boolean>, what: string) => {
    await stand.world.versions.put(model);
    await surviving(() => stand.until(name, done, what));
  };
  const rollouts = async (wanted: string) => (await stand.rollouts(name)).join() === wanted;
  await publish(async () => stand.router.arms(name).join() === '1 1', 'served');
  await publish(() => rollouts('2 promoted'), 'promoted');
  await publish(() => rollouts('2 promoted,3 rolled_back'), 'rolled back');
  await surviving(() => stand.until(name, async () => stand.router.arms(name).join() === '2 1', 'back'));
  const rows = await stand.world.get(RolloutService).list({ endpoint: name, limit: 10 });
  const events = await Promise.all(rows.map(({ id }) => stand.world.get(RolloutService).events(id, 0, 100)));
  return [
    ...(await stand.rollouts(name)),
    ...events.flat().flatMap(({ type }) => (type === 'waiting' ? [] : [type])),
    ...(await stand.world.states(name)).filter((state) => state.endsWith('ready')),
    ...(await stand.world.database.query(`select version from quarantine where endpoint = $1`, [name])).map(
      ({ version }) => `quarantine ${version}`,
    ),
  ];
}

it('killed before and after the commit of each step, a rollout comes to the same end, and nothing is said twice', async () => {
  const expected = await life('calm');
  expect(expected).toEqual([
    '2 promoted', '3 rolled_back',
    'started', 'stage', 'step', 'rolled_back', 'started', 'stage', 'step', 'step', 'promoted',
    '2 ready', '1 ready', 'quarantine 3',
  ]); // biome-ignore format: as it reads best
  const fault = crashAtEachStep();
  expect(await life('unlucky')).toEqual(expected);
  fault.stop();
  expect(fault.crashes()).toBeGreaterThanOrEqual(2 * 9);
}, 60_000);
