import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, ruleSpec } from '../support/fleet.ts';

describe('an endpoint with an auto-update rule', () => {
  let world: FleetWorld;
  let agent: FakeAgent;
  let router: FakeRouter;
  beforeAll(async () => {
    world = await FleetWorld.start();
    agent = await world.agent('s1');
    router = await world.router('r1');
  });
  afterAll(() => world.close());

  const converge = () => world.converge([agent], [router]);

  it('waits for a version, serves the first, and follows what is published', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a'));
    await converge();
    expect((await world.endpoint('text/a')).status).toMatchObject({ phase: 'blocked', reason: 'no_model' });
    expect(router.table!.endpoints['text/a']!.targets).toEqual([]);

    await world.versions.put('nlp/a');
    await converge();
    expect(await world.states('text/a')).toEqual(['1 ready']);
    expect(router.arms('text/a')).toEqual(['1 1']);
    expect(agent.models).toEqual(['a-v1']);

    await world.versions.put('nlp/a');
    await converge();
    expect(await world.states('text/a')).toEqual(['2 ready']);
    expect(router.arms('text/a')).toEqual(['2 1']);
    expect(agent.models).toEqual(['a-v2']);
    expect((await world.endpoint('text/a')).status).toMatchObject({
      phase: 'ready',
      servingVersions: [2],
      nextVersion: null,
    });
  });
});
