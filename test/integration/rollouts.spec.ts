import { EndpointReconcile, EndpointService } from '@perch/endpoints';
import { collectRows } from '@perch/platform/database';
import { EvidenceService, promotionGarbage, RolloutReconcile, RolloutService, RolloutStore } from '@perch/promotion';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operator, transactions } from '../support/fleet.ts';
import { progressive, RolloutStand } from './rollout-stand.ts';

describe('publishing is all that a person does', () => {
  let stand: RolloutStand;
  beforeAll(async () => {
    stand = await RolloutStand.start();
  });
  afterAll(() => stand.close());
  const service = () => stand.world.get(RolloutService);

  it('the first version takes the traffic, the next one earns it by evidence', async () => {
    await stand.world.apply(progressive('text/a', 'nlp/a'));
    await stand.world.versions.put('nlp/a');
    await stand.until('text/a', async () => stand.router.arms('text/a').join() === '1 1', 'served');
    expect(await stand.rollouts('text/a')).toEqual([]);
    await stand.world.versions.put('nlp/a');
    await stand.untilRollouts('text/a', ['2 promoted']);
    await stand.until('text/a', async () => stand.router.arms('text/a').join() === '2 1', 'served by version 2');
    const [rollout] = await service().list({ endpoint: 'text/a', limit: 1 });
    const events = await service().events(rollout!.id, 0, 100);
    const types = events.map(({ type }) => type).filter((type) => type !== 'waiting'); // a dwell is shorter than a turn here
    expect(types).toEqual(['started', 'stage', 'step', 'step', 'step', 'promoted']);
    const explained = await service().explain(rollout!.id);
    expect(explained).toMatchObject({ agrees: true, event: { type: 'promoted' } });
    expect(explained.sentences.length).toBeGreaterThan(3);
    // The old version stays loaded for its rollback window.
    expect(await stand.world.states('text/a')).toEqual(['2 ready', '1 ready']);
    const back = await service().command(operator, rollout!.id, 'rollback', 'customers complain');
    expect(back).toMatchObject({ state: 'rolled_back', reason: expect.stringContaining('customers complain') });
    await stand.until('text/a', async () => stand.router.arms('text/a').join() === '1 1', 'back');
  });

  it('a version with errors goes back, is told why, and is never tried again by itself', async () => {
    await stand.world.apply(progressive('text/b', 'nlp/b'));
    await stand.world.versions.put('nlp/b');
    await stand.until('text/b', async () => stand.router.arms('text/b').join() === '1 1', 'served');
    stand.bad.add(2);
    await stand.world.versions.put('nlp/b');
    await stand.untilRollouts('text/b', ['2 rolled_back']);
    stand.bad.clear();
    await stand.until('text/b', async () => stand.router.arms('text/b').join() === '1 1', 'back');
    for (let turn = 0; turn < 3; turn += 1) await stand.turn('text/b');
    expect(await stand.rollouts('text/b')).toEqual(['2 rolled_back']);
    const [rollout] = await service().list({ endpoint: 'text/b', active: false, limit: 1 });
    const explained = await service().explain(rollout!.id);
    expect(explained).toMatchObject({ agrees: true, recomputed: { next: 'roll_back' } });
    expect(rollout!.fallbacks).toBe(400);
    await expect(service().start(operator, 'text/b', { version: 2, allowBreaking: false, reason: '' })).rejects.toThrow(
      'was refused',
    );
    // The rule goes on with the next version.
    await stand.world.versions.put('nlp/b');
    await stand.untilRollouts('text/b', ['2 rolled_back', '3 promoted']);
    expect(stand.world.noted.filter(({ action }) => action.startsWith('rollout.')).map(({ action }) => action)).toEqual(
      expect.arrayContaining(['rollout.started', 'rollout.step', 'rollout.promoted', 'rollout.rolled_back']),
    );
  });

  it('one that answers nobody waits and says so; a person aborts it, and the rule is held', async () => {
    await stand.world.apply(progressive('text/c', 'nlp/c'));
    await stand.world.versions.put('nlp/c');
    await stand.until('text/c', async () => stand.router.arms('text/c').join() === '1 1', 'served');
    await stand.world.versions.put('nlp/c');
    const quiet = async () => {
      await stand.world.settle();
      await stand.agent.sync();
      await stand.router.sync();
      return (await service().list({ endpoint: 'text/c', active: true, limit: 1 }))[0];
    };
    await expect.poll(async () => (await quiet())?.run, { timeout: 10_000, interval: 20 }).toBe('waiting');
    const waiting = (await quiet())!;
    expect(waiting).toMatchObject({ state: 'shifting', decision: { verdict: 'insufficient' } });
    await expect(service().start(operator, 'text/c', { allowBreaking: false, reason: '' })).rejects.toThrow('goes on');
    const census = () => stand.world.get(RolloutStore).census(transactions(stand.world).manager);
    expect(await census()).toEqual([{ state: 'shifting', run: 'waiting', count: 1 }]);
    await service().command(operator, waiting.id, 'abort', 'not today');
    await service().command(operator, waiting.id, 'abort', 'not today');
    await stand.until('text/c', async () => stand.router.arms('text/c').join() === '1 1', 'back');
    for (let turn = 0; turn < 3; turn += 1) await stand.turn('text/c');
    expect(await stand.rollouts('text/c')).toEqual(['2 aborted']);
    const again = await service().start(operator, 'text/c', { version: 2, allowBreaking: false, reason: 'now' });
    expect(again).toMatchObject({ state: 'pending', startedBy: 'olga' });
    await stand.untilRollouts('text/c', ['2 aborted', '2 promoted']);
    expect(await census()).toEqual([]);
  });

  it('the endpoint itself ends it: stopped, another mode, removed; and the rule begins anew where it may', async () => {
    const spec = progressive('text/d', 'nlp/d', { dwellMs: 600_000 });
    const trial = ['1 0.9', '2 0.1'];
    const onTrial = async () => stand.router.arms('text/d').sort().join() === trial.join();
    const ended = (count: number) => async () =>
      (await stand.rollouts('text/d')).filter((one) => one === '2 aborted').length === count;
    await stand.world.apply(spec);
    await stand.world.versions.put('nlp/d');
    await stand.until('text/d', async () => stand.router.arms('text/d').join() === '1 1', 'served');
    await stand.world.versions.put('nlp/d');
    await stand.until('text/d', onTrial, 'on trial');
    await stand.world.apply({ ...spec, stopped: true });
    await stand.until('text/d', ended(1), 'ended by the stop');
    await stand.world.apply(spec);
    await stand.until('text/d', onTrial, 'on trial again');
    await stand.world.apply({ ...spec, traffic: { mode: 'newest' } });
    await stand.until('text/d', ended(2), 'ended by the mode');
    await stand.until('text/d', async () => stand.router.arms('text/d').join() === '2 1', 'served by the newest');
    await stand.world.apply(spec);
    await stand.world.versions.put('nlp/d');
    await stand.until('text/d', async () => stand.router.arms('text/d').length === 2, 'on trial once more');
    await stand.world.get(EndpointService).remove(operator, 'text/d');
    await stand.until(
      'text/d',
      async () => (await stand.rollouts('text/d')).at(-1) === '3 aborted',
      'ended by the removal',
    );
    const [last] = await service().list({ endpoint: 'text/d', limit: 1 });
    expect(last).toMatchObject({ reason: 'the endpoint was removed', weightPercent: 0 });
  });

  it('a shadow comes first where the policy wants one: copies of requests, and no traffic', async () => {
    await stand.world.apply(progressive('text/s', 'nlp/s', { shadow: { sample: 1, pairs: 50 } }));
    await stand.world.versions.put('nlp/s');
    await stand.until('text/s', async () => stand.router.arms('text/s').join() === '1 1', 'served');
    await stand.world.versions.put('nlp/s');
    const route = () => stand.router.table!.endpoints['text/s']!;
    await stand.until('text/s', async () => route().rollout !== undefined, 'in the shadow');
    const { id, epoch, candidate, shadow } = route().rollout!;
    expect(shadow).toMatchObject({ sample: 1 });
    expect(route().arms.find(({ deployment }) => deployment === candidate)?.share ?? 0).toBe(0);
    expect(route().targets.map(({ deployment }) => deployment)).toContain(candidate);
    const pairs = { pairs: 60, agree: 60, compared: 60, discordant: {}, dropped: 0 };
    const none = { ended: {}, closed: {} };
    const said = { rollout: id, epoch, worker: 1, stable: none, candidate: none, pairs, fallbacks: 0, keyless: 0 };
    await stand.world.get(EvidenceService).take(stand.router.id, 'b1', [said]);
    await stand.untilRollouts('text/s', ['2 promoted']);
    const [rollout] = await service().list({ endpoint: 'text/s', limit: 1 });
    expect(rollout!.pairs).toMatchObject({ compared: 60, agree: 60 });
  });

  it('many control planes look at it at once, and nothing happens twice', async () => {
    await stand.world.apply(progressive('text/e', 'nlp/e'));
    await stand.world.versions.put('nlp/e');
    await stand.until('text/e', async () => stand.router.arms('text/e').join() === '1 1', 'served');
    await stand.world.versions.put('nlp/e');
    const crowd = async () => {
      const looks = Array.from({ length: 6 }, () => stand.world.get(RolloutReconcile).reconcile('text/e'));
      await Promise.all([...looks, stand.world.get(EndpointReconcile).reconcile('text/e')]);
      return (await stand.rollouts('text/e')).join() === '2 promoted';
    };
    await stand.until('text/e', crowd, 'promoted');
    const [rollout] = await service().list({ endpoint: 'text/e', limit: 10 });
    const types = (await service().events(rollout!.id, 0, 100)).map(({ type }) => type);
    expect(types.filter((type) => type !== 'waiting')).toEqual([
      'started', 'stage', 'step', 'step', 'step', 'promoted',
    ]); // biome-ignore format: one row reads better
  });

  it('rollouts of long ago go, but never the last one of an endpoint', async () => {
    const collect = (dryRun: boolean) =>
      collectRows(transactions(stand.world).manager, promotionGarbage[0]!, new Date(Date.now() + 1_000), dryRun);
    const age = `update rollouts set ended_at = ended_at - interval '31 days', started_at = started_at - interval '31 days'
      where endpoint = 'text/b'`;
    await stand.world.database.query(age);
    expect(await collect(true)).toMatchObject({ count: 1, examples: ['text/b version 2'] });
    await collect(false);
    expect(await stand.rollouts('text/b')).toEqual(['3 promoted']);
  });

  it('two are never there at once, and unknown ones are told', async () => {
    const columns = `id, endpoint, state, run, reason, stable, candidate, policy, salt, epoch, share, epochs, by_hand,
      allow_breaking, started_at, started_by, step_at, verifying_since, patience_since`;
    const copy = `insert into rollouts (${columns}) select gen_random_uuid(), endpoint, 'pending', ${columns
      .split(',')
      .slice(3)
      .join(',')} from rollouts where endpoint = 'text/a' limit 1`;
    await stand.world.database.query(copy);
    await expect(stand.world.database.query(copy)).rejects.toThrow('rollouts_active');
    await expect(service().get('3f2b0c1e-0000-4000-8000-000000000000')).rejects.toMatchObject({ code: 'not_found' });
    await expect(service().get('nonsense')).rejects.toMatchObject({ code: 'not_found' });
  });
});
