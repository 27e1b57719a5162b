import { RolloutService, SimulationService } from '@perch/promotion';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operator } from '../support/fleet.ts';
import { progressive, RolloutStand } from './rollout-stand.ts';

describe('what is said before anything starts', () => {
  let stand: RolloutStand;
  const name = 'text/a';
  beforeAll(async () => {
    stand = await RolloutStand.start();
    await stand.world.apply(progressive(name, 'nlp/a'));
    await stand.world.versions.put('nlp/a');
    await stand.until(name, async () => stand.router.arms(name).join() === '1 1', 'served');
  });
  afterAll(() => stand?.close());

  it('a dry run says what would start, and nothing stays of it', async () => {
    const service = stand.world.get(RolloutService);
    await stand.world.versions.put('nlp/a', { state: 'draft' });
    const before = await stand.world.states(name);
    const wish = { version: 2, allowBreaking: false, reason: 'just looking' };
    const would = await service.start(operator, name, wish, { dryRun: true });
    expect(would).toMatchObject({
      endpoint: name,
      state: 'pending',
      stable: { version: 1 },
      candidate: { version: 2 },
      startedBy: operator.name,
      reason: expect.stringContaining('just looking'),
    });
    for (let turn = 0; turn < 2; turn += 1) await stand.turn(name);
    expect(await stand.rollouts(name)).toEqual([]);
    expect(await stand.world.states(name)).toEqual(before);
    expect(stand.world.noted.filter(({ action }) => action === 'rollout.started')).toEqual([]);
    await expect(service.start(operator, name, { ...wish, version: 9 }, { dryRun: true })).rejects.toMatchObject({
      code: 'not_found',
    });
    // And the real one starts as it was said.
    const started = await service.start(operator, name, wish);
    expect(started.candidate.digest).toBe(would.candidate.digest);
    await service.command(operator, started.id, 'abort', 'enough');
  });

  it('a simulation takes the policy of the endpoint, and one of its own where one is given', async () => {
    const simulations = stand.world.get(SimulationService);
    const wish = { requestsPerMinute: 60_000, errorRate: 0.001, runs: 50, seed: 7 };
    const [own, quick] = [
      await simulations.simulate(name, wish),
      await simulations.simulate(name, { ...wish, policy: 'quick' }),
    ];
    expect(own).toMatchObject({ policy: { ramp: 'steps' }, runs: 50, source: 'Requests as given; errors as given.' });
    expect(quick.policy.ramp).toBe('auto');
    expect(quick.falseRollbackRate).toBeLessThan(0.2);
    expect(quick.stops.at(-1)).toMatchObject({ rolledBack: 1 });
    expect(await simulations.simulate(name, { ...wish, policy: 'quick' })).toEqual(quick);
    const twice = [simulations.simulate(name, wish), simulations.simulate(name, wish)];
    const refused = (await Promise.allSettled(twice)).filter(({ status }) => status === 'rejected');
    expect(refused).toMatchObject([{ reason: { code: 'unavailable' } }]);
    await expect(simulations.simulate('nobody', wish)).rejects.toMatchObject({ code: 'not_found' });
  }, 60_000);
});
