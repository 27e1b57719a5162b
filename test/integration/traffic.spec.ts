import { type EndpointSpecInput, type Route, sha256Hex } from '@perch/contracts';
import {
  EndpointService,
  FanOutReconcile,
  type ForcedRollout,
  QuarantineService,
  rolloutWork,
  type TrafficForce,
  TrafficService,
} from '@perch/endpoints';
import { Transactions, WorkStore } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Crash, type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

const trial: ForcedRollout = {
  id: 'r1', epoch: 0, salt: 'salt', leaseMs: 15_000, slowMs: null, slowGraceMs: 30_000, metrics: ['error'],
  fallback: { budgetPercent: 20 }, shadow: null, feedbackKey: null,
}; // biome-ignore format: one record

describe('a progressive endpoint', () => {
  let world: FleetWorld;
  let agent: FakeAgent;
  let router: FakeRouter;
  beforeAll(async () => {
    world = await FleetWorld.start();
    world.asleep.add(rolloutWork); // here the test says what a rollout would
    agent = await world.agent('s1');
    agents.push(agent);
    router = await world.router('r1');
  });
  afterAll(() => world.close());

  const agents: FakeAgent[] = [];
  const converge = () => world.converge(agents, [router]);
  const traffic = () => world.get(TrafficService);
  const inTx = <T>(work: Parameters<Transactions['run']>[0]) => world.get(Transactions).run(work) as Promise<T>;
  const look = (name: string) => traffic().look(world.get(Transactions).manager, name);
  const progressive = (name: string, model: string, more: Partial<EndpointSpecInput> = {}) =>
    ruleSpec(name, model, { traffic: { mode: 'progressive' }, ...more });
  const loaded = (prefix: string) =>
    agents
      .flatMap(({ models }) => models)
      .filter((model) => model.startsWith(`${prefix}-`))
      .sort();
  const digestOf = async (name: string, version: number) =>
    (await look(name)).deployments.find((one) => one.version === version)!.digest;
  /** What a rollout does in one transaction. */
  const put = (name: string, change: (force: TrafficForce) => TrafficForce) =>
    inTx<void>(async (tx) => traffic().put(tx, name, change((await traffic().look(tx, name)).force)));
  const refuse = (name: string, digest: string, version: number, reason = 'it erred') =>
    inTx<void>(async (tx) => {
      await traffic().quarantine(tx, operator, { endpoint: name, digest, version, reason, rollout: null });
      const { force } = await traffic().look(tx, name);
      await traffic().put(tx, name, { ...force, candidate: null, share: 0, rollout: null });
    });
  /** An endpoint with version 1 stable and version 2 on trial. */
  async function onTrial(name: string, model: string, share = 0.05, more: Partial<EndpointSpecInput> = {}) {
    await world.apply(progressive(name, model, more));
    await world.versions.put(model);
    await converge();
    await world.versions.put(model);
    await converge();
    const candidate = await digestOf(name, 2);
    await put(name, (force) => ({ ...force, candidate, share, rollout: trial }));
    await converge();
    return { stable: await digestOf(name, 1), candidate };
  }
  const status = async (name: string) => (await world.endpoint(name)).status;

  it('the first version becomes stable by itself; a newer one is loaded, told of, and gets nothing', async () => {
    await world.apply(progressive('t/a', 'p/a'));
    await world.versions.put('p/a');
    await converge();
    expect(router.arms('t/a')).toEqual(['1 1']);
    const first = await look('t/a');
    expect(first.force).toMatchObject({ stable: first.deployments[0]!.digest, candidate: null, held: null });
    expect(await status('t/a')).toMatchObject({ phase: 'ready', message: 'version 1 serves' });

    await world.database.query('delete from work where kind = $1', [rolloutWork]);
    await world.versions.put('p/a');
    await converge();
    expect(await world.states('t/a')).toEqual(['2 ready', '1 ready']);
    expect(router.arms('t/a')).toEqual(['1 1']);
    expect(router.table!.endpoints['t/a']!.targets.map(({ version }) => version)).toEqual([2, 1]);
    const second = await look('t/a');
    expect(second.wish.newest).toEqual({ version: 2, digest: await digestOf('t/a', 2) });
    expect(second.force).toEqual(first.force);
    expect(second.deployments[0]!.signature!.inputs[0]!.name).toBe('x');
    expect(await status('t/a')).toMatchObject({
      phase: 'progressing',
      reason: 'rollout',
      message: 'version 1 serves; version 2 is ready for its trial',
      nextVersion: 2,
      servingVersions: [1],
    });
    const asked = await world.database.query('select key from work where kind = $1', [rolloutWork]);
    expect(asked).toEqual([{ key: 't/a' }]);
  });

  it('a rollout shares the traffic, promotes, and keeps the old version as long as it says', async () => {
    const { stable, candidate } = await onTrial('t/b', 'p/b');
    expect(router.arms('t/b')).toEqual(['2 0.05', '1 0.95']);
    const route = router.table!.endpoints['t/b']!;
    const ids = Object.fromEntries(route.targets.map(({ version, deployment }) => [version, deployment]));
    expect(route.rollout).toEqual({ ...trial, stable: ids[1], candidate: ids[2] });
    expect(route.sticky).toBeUndefined();
    expect((await status('t/b')).message).toBe('version 1 serves; version 2 on trial with 5 %');
    const shown = await world.endpoint('t/b');
    expect(shown.deployments.map(({ weightPercent, role }) => [weightPercent, role])).toEqual([
      [5, 'candidate'],
      [95, 'stable'],
    ]);

    await put('t/b', (force) => ({
      ...force,
      stable: candidate,
      candidate: null,
      keep: [stable],
      share: 0,
      rollout: null,
    }));
    await converge();
    expect(router.arms('t/b')).toEqual(['2 1']);
    expect(loaded('b')).toEqual(['b-v1', 'b-v2']);
    expect(await status('t/b')).toMatchObject({ phase: 'ready', message: 'version 2 serves' });
    await put('t/b', (force) => ({ ...force, keep: [] }));
    await converge();
    expect(loaded('b')).toEqual(['b-v2']);
  });

  it('what was refused is never deployed again by itself, whatever happens, until a person releases it', async () => {
    const { candidate } = await onTrial('t/c', 'p/c');
    await refuse('t/c', candidate, 2, 'its errors are 30 times those of version 1');
    const gone = async () => {
      await converge();
      expect(loaded('c')).toEqual(['c-v1']);
      expect(router.arms('t/c')).toEqual(['1 1']);
      expect((await look('t/c')).wish.newest).toMatchObject({ version: 1 });
    };
    await gone();
    const words = `version 1 serves; version 2 was refused: its errors are 30 times those of version 1; release it with "perch endpoint quarantine t/c --release ${candidate.slice(0, 12)}"`;
    expect(await status('t/c')).toMatchObject({ phase: 'blocked', reason: 'refused', message: words });
    await world.versions.change('p/c', 2, { state: 'draft' });
    await converge();
    await world.versions.change('p/c', 2, { state: 'published', tags: ['again'] });
    await gone();
    await world.restart();
    await world.get(FanOutReconcile).reconcileModel('p/c');
    await gone();
    for (const stopped of [true, false]) await world.apply(progressive('t/c', 'p/c', { stopped }));
    await gone();
    // an old word of a rollout that names it still
    await put('t/c', (force) => ({ ...force, candidate, share: 0.5, keep: [candidate], rollout: trial }));
    await gone();
    await put('t/c', (force) => ({ ...force, stable: candidate }));
    await gone();
    await world.apply(ruleSpec('t/c', 'p/c', { model: { project: 'p', name: 'c', version: 2 } }));
    await converge();
    expect(loaded('c')).toEqual(['c-v1']);
    expect(router.arms('t/c')).toEqual(['1 1']);
    await world.apply(progressive('t/c', 'p/c'));
    await gone();
    await expect(traffic().propose('t/c', 2)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('was refused'),
    });

    const quarantine = world.get(QuarantineService);
    expect(await quarantine.list('t/c')).toMatchObject([{ version: 2, digest: candidate, rollout: null }]);
    await expect(quarantine.release(operator, 't/c', 'ffffffffffff')).rejects.toMatchObject({ code: 'not_found' });
    await quarantine.release(operator, 't/c', candidate.slice(0, 12));
    await converge();
    expect(loaded('c')).toEqual(['c-v1', 'c-v2']);
    expect((await look('t/c')).wish.newest).toMatchObject({ version: 2 });
    expect(router.arms('t/c')).toEqual(['1 1']);
    expect(
      world.noted.filter(({ action }) => action.startsWith('quarantine.')).map(({ actor, action }) => [actor, action]),
    ).toEqual([
      ['olga', 'quarantine.add'],
      ['olga', 'quarantine.release'],
    ]);
  });

  it('after a refusal the rule goes on with the next version, and never back to an older one with the refused settings', async () => {
    const { candidate } = await onTrial('t/d', 'p/d');
    await refuse('t/d', candidate, 2);
    await world.versions.put('p/d');
    await converge();
    expect(await world.states('t/d')).toEqual(['3 ready', '1 ready']);
    expect((await look('t/d')).wish.newest).toMatchObject({ version: 3 });
    const third = await digestOf('t/d', 3);
    await put('t/d', (force) => ({ ...force, stable: third }));
    await converge();
    expect(await world.states('t/d')).toEqual(['3 ready']);

    await world.apply(progressive('t/d', 'p/d', { engine: { maxBatchSize: 4 } }));
    await converge();
    expect(await world.states('t/d')).toEqual(['3 ready', '3 ready']);
    const { wish } = await look('t/d');
    await refuse('t/d', wish.newest!.digest, 3, 'slower');
    await converge();
    expect(await world.states('t/d')).toEqual(['3 ready']);
    expect((await look('t/d')).wish.newest).toEqual({ version: 3, digest: third });
    expect((await status('t/d')).message).toMatch(
      /^version 3 serves; version 3 with other settings was refused: slower; /,
    );
  });

  it('new settings alone are a candidate: two deployments of one version serve side by side', async () => {
    await world.apply(progressive('t/e', 'p/e'));
    await world.versions.put('p/e');
    await converge();
    const stable = await digestOf('t/e', 1);
    await world.apply(progressive('t/e', 'p/e', { processing: { builtin: 'text-embedding' } }));
    await converge();
    const { wish } = await look('t/e');
    expect(wish.newest).toMatchObject({ version: 1 });
    expect(wish.newest!.digest).not.toBe(stable);
    expect((await status('t/e')).message).toBe(
      'version 1 serves; version 1 with other settings is ready for its trial',
    );
    expect(router.table!.endpoints['t/e']!.targets.map(({ processing }) => processing.builtin)).toEqual([
      'passthrough',
      'text-embedding',
    ]);
    await put('t/e', (force) => ({ ...force, candidate: wish.newest!.digest, share: 0.25, rollout: trial }));
    await converge();
    expect(router.arms('t/e')).toEqual(['1 0.25', '1 0.75']);
    expect((await status('t/e')).message).toBe('version 1 serves; version 1 with other settings on trial with 25 %');
    await put('t/e', (force) => ({ ...force, stable: wish.newest!.digest, candidate: null, share: 0, rollout: null }));
    await converge();
    expect(router.arms('t/e')).toEqual(['1 1']);
    expect(router.table!.endpoints['t/e']!.targets.map(({ processing }) => processing.builtin)).toEqual([
      'text-embedding',
    ]);
  });

  it('stopped and started in the middle of a trial: both come back, the stable one as it was; what was archived does not', async () => {
    const sticky = { header: 'X-User-Id' };
    const stuck: EndpointSpecInput['traffic'] = { mode: 'progressive', sticky };
    const { stable } = await onTrial('t/f', 'p/f', 0.25, { traffic: stuck });
    expect(router.table!.endpoints['t/f']!.sticky).toEqual({ header: 'x-user-id', salt: 'salt' });
    const switchTo = async (stopped: boolean) => {
      await world.apply(progressive('t/f', 'p/f', { traffic: stuck, stopped }));
      await converge();
    };
    await switchTo(true);
    expect([loaded('f'), router.table!.endpoints['t/f']!.arms]).toEqual([[], []]);
    await switchTo(false);
    expect(router.arms('t/f')).toEqual(['2 0.25', '1 0.75']);
    expect(await digestOf('t/f', 1)).toBe(stable);
    await switchTo(true);
    await world.versions.change('p/f', 1, { state: 'archived' });
    await switchTo(false);
    expect([loaded('f'), router.arms('t/f')]).toEqual([['f-v2'], ['2 1']]);
  });

  it('unpublished and archived versions stay while a trial needs them; nothing is left when nothing is wanted', async () => {
    await onTrial('t/g', 'p/g');
    await world.versions.change('p/g', 1, { state: 'archived' });
    await converge();
    expect(router.arms('t/g')).toEqual(['2 0.05', '1 0.95']);
    await world.versions.change('p/g', 2, { state: 'archived' });
    await converge();
    expect([loaded('g'), router.table!.endpoints['t/g']!.arms]).toEqual([[], []]);
    expect(await status('t/g')).toMatchObject({ phase: 'blocked', reason: 'no_version' });
    await world.versions.put('p/g');
    await converge();
    expect([loaded('g'), router.arms('t/g')]).toEqual([['g-v3'], ['3 1']]);
  });

  it('a candidate that routers cannot serve gets nothing, and is no trial', async () => {
    await onTrial('t/h', 'p/h');
    const second = (await world.endpoint('t/h')).deployments[0]!;
    await world.database.query(
      `update routers set report = jsonb_set(report, '{problems}', $1) where report is not null`,
      [JSON.stringify({ [second.id]: 'tokenizer.json: unknown type' })],
    );
    await world.get(WorkStore).enqueue(null, 'endpoint', 't/h');
    await world.settle();
    const rows = await world.database.query('select route from endpoint_routes where endpoint = $1', ['t/h']);
    const { arms, rollout } = rows[0]!['route'] as Route;
    expect([arms.map(({ share }) => share), rollout]).toEqual([[1], undefined]);
    expect((await look('t/h')).deployments[0]).toMatchObject({
      version: 2,
      state: 'failed',
      reason: 'router r1: tokenizer.json: unknown type',
    });
    expect((await status('t/h')).message).toBe(
      'version 2 failed: router r1: tokenizer.json: unknown type; version 1 serves',
    );
    await router.sync();
    await converge();
    expect(router.arms('t/h')).toEqual(['2 0.05', '1 0.95']);
  });

  it('one arm that cannot serve leaves its share to the other', async () => {
    await onTrial('t/i', 'p/i');
    agent.behaviour.set('i-v1-', 'CUDA error');
    await converge();
    expect(router.arms('t/i')).toEqual(['2 1']);
    expect(router.table!.endpoints['t/i']!.rollout).toBeUndefined();
    expect((await status('t/i')).message).toBe('version 1 does not serve; version 2 on trial with 100 %');
    agent.behaviour.clear();
  });

  it('held updates bring nothing new until somebody resumes them', async () => {
    await onTrial('t/j', 'p/j');
    await put('t/j', (force) => ({ ...force, candidate: null, share: 0, rollout: null, held: 'olga' }));
    await converge();
    await world.versions.put('p/j');
    await converge();
    expect(loaded('j')).not.toContain('j-v3');
    expect((await look('t/j')).wish.newest).toMatchObject({ version: 3 });
    expect(await status('t/j')).toMatchObject({
      phase: 'blocked',
      reason: 'held',
      message: 'version 1 serves; automatic updates are held by olga; "perch endpoint resume t/j" lets them go on',
    });
    await world.get(QuarantineService).resume(operator, 't/j', 'fixed');
    await converge();
    expect(loaded('j')).toContain('j-v3');
    expect((await look('t/j')).force.held).toBeNull();
  });

  it('changes of the mode move no traffic that they do not have to, and what a rollout said ends with it', async () => {
    const seen: string[][] = [];
    const apply = async (mode: object) => {
      await world.apply(ruleSpec('t/k', 'p/k', { model: { project: 'p', name: 'k', maxVersions: 2 }, traffic: mode }));
      await converge();
      seen.push(router.arms('t/k'));
    };
    await world.versions.put('p/k');
    await apply({ mode: 'newest' });
    agent.behaviour.set('k-v2-', 'loading');
    await world.versions.put('p/k');
    await apply({ mode: 'progressive' });
    agent.behaviour.clear();
    await converge();
    seen.push(router.arms('t/k'));
    await apply({ mode: 'weighted', weights: { '1': 90, '2': 10 } });
    await apply({ mode: 'progressive' });
    await put('t/k', (force) => ({ ...force, candidate: force.stable && force.stable, share: 0.5 }));
    await apply({ mode: 'newest' });
    await put('t/k', (force) => ({ ...force, stable: 'an old word' }));
    await apply({ mode: 'progressive' });
    expect(seen).toEqual([['1 1'], ['1 1'], ['1 1'], ['2 0.1', '1 0.9'], ['1 1'], ['2 1'], ['2 1']]);
    expect((await look('t/k')).force).toMatchObject({ stable: await digestOf('t/k', 2), candidate: null, share: 0 });
  });

  it('more replicas and another pool keep both arms in service', async () => {
    await onTrial('t/l', 'p/l');
    agents.push(await world.agent('s2'));
    await world.apply(progressive('t/l', 'p/l', { fleet: { replicas: 2 } }));
    await converge();
    const servers = () => router.table!.endpoints['t/l']!.targets.map(({ servers: on }) => on.length);
    expect([servers(), router.arms('t/l')]).toEqual([
      [2, 2],
      ['2 0.05', '1 0.95'],
    ]);
    const gpu = await world.agent('g1', 'gpu');
    agents.push(gpu);
    await world.apply(progressive('t/l', 'p/l', { fleet: { pool: 'gpu' } }));
    await world.settle();
    expect([servers(), router.arms('t/l')]).toEqual([
      [2, 2],
      ['2 0.05', '1 0.95'],
    ]);
    await converge();
    expect(router.table!.endpoints['t/l']!.targets.map(({ servers: on }) => on)).toEqual([[gpu.id], [gpu.id]]);
    expect(router.arms('t/l')).toEqual(['2 0.05', '1 0.95']);
  });

  it('any version can be proposed; the deployment is made with it, and what is not put goes again', async () => {
    await world.apply(progressive('t/m', 'p/m'));
    for (let n = 0; n < 3; n += 1) await world.versions.put('p/m');
    await converge();
    expect(router.arms('t/m')).toEqual(['3 1']);
    const proposal = await traffic().propose('t/m', 1);
    await inTx(async (tx) => {
      await traffic().prepare(tx, proposal);
      const { force } = await traffic().look(tx, 't/m');
      await traffic().put(tx, 't/m', { ...force, candidate: proposal.digest, share: 0.01, rollout: trial });
    });
    await converge();
    expect(router.arms('t/m')).toEqual(['1 0.01', '3 0.99']);
    await inTx(async (tx) => traffic().prepare(tx, await traffic().propose('t/m', 2)));
    await converge();
    expect(await world.states('t/m')).toEqual(['3 ready', '1 ready']);

    await world.apply(progressive('t/m', 'p/m', { fleet: { replicas: 2 } }));
    await expect(inTx((tx) => traffic().prepare(tx, proposal))).rejects.toMatchObject({ code: 'conflict' });
    await expect(traffic().propose('t/m', 9)).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('no version 9'),
    });
    await world.versions.change('p/m', 2, { state: 'archived' });
    await expect(traffic().propose('t/m', 2)).rejects.toMatchObject({ code: 'not_found' });
    await expect(traffic().propose('t/none', 1)).rejects.toMatchObject({ code: 'not_found' });
    await world.apply(ruleSpec('t/m', 'p/m'));
    await expect(traffic().propose('t/m', 1)).rejects.toMatchObject({ code: 'invalid' });
  });

  it('a removed endpoint leaves no word behind but what was refused', async () => {
    const { candidate } = await onTrial('t/n', 'p/n');
    await refuse('t/n', candidate, 2);
    await world.get(EndpointService).remove(operator, 't/n');
    await converge();
    const left = await look('t/n');
    expect([left.exists, left.force.stable, left.wish.newest, left.quarantine]).toEqual([
      false,
      null,
      null,
      [candidate],
    ]);
    await world.apply(progressive('t/n', 'p/n'));
    await converge();
    expect(router.arms('t/n')).toEqual(['1 1']);
  });

  it('a candidate that was taken back stays loaded while a router may still send to it', async () => {
    const { stable, candidate } = await onTrial('t/p', 'p/p');
    const held = (await look('t/p')).deployments.find(({ digest }) => digest === candidate)!.id;
    router.inFlight = { [held]: 1 };
    await refuse('t/p', candidate, 2);
    await converge();
    expect([router.arms('t/p'), loaded('p')]).toEqual([['1 1'], ['p-v1', 'p-v2']]);
    // nor does it come back while it is still there: the stable one loses its server
    for (const { behaviour } of agents) behaviour.set('p-v1-', 'CUDA error');
    await converge();
    expect(await digestOf('t/p', 1)).toBe(stable);
    expect(router.table!.endpoints['t/p']!.targets.map(({ version }) => version)).not.toContain(2);
    for (const { behaviour } of agents) behaviour.clear();
    router.inFlight = {};
    await converge();
    expect(loaded('p')).not.toContain('p-v2');
  });

  it('servers are handed the golden requests of a version; one that is not answered fails the candidate alone', async () => {
    await world.apply(progressive('t/q', 'p/q'));
    await world.versions.put('p/q');
    await converge();
    for (const { behaviour } of agents)
      behaviour.set('q-v2-', 'golden request one: output y differs at [0]: wanted 2, got 3');
    const file = (path: string) => ({ path, sha256: sha256Hex(path), size: 9 });
    await world.versions.put('p/q', { files: ['model.onnx', 'golden/one.json'].map(file) });
    await converge();
    const [, model] = agents
      .flatMap(({ desired }) => Object.entries(desired))
      .find(([name]) => name.startsWith('q-v2-'))!;
    expect(model.files.map(({ path }) => path)).toEqual(['1/model.onnx', 'golden/one.json']);
    const [second] = (await look('t/q')).deployments;
    expect([second!.state, second!.reason]).toEqual([
      'failed',
      expect.stringMatching(/^server s\d: golden request one: output y differs at \[0\]: wanted 2, got 3$/),
    ]);
    expect(router.arms('t/q')).toEqual(['1 1']);
    expect((await status('t/q')).message).toMatch(
      /^version 2 failed: server s\d: golden request one: .*; version 1 serves$/,
    );
    for (const { behaviour } of agents) behaviour.clear();
  });

  it.each(['before commit', 'after commit'] as const)(
    'a crash %s of any step loses no word about the traffic',
    async (when) => {
      for (const n of [1, 2, 3]) {
        const name = `t/crash-${when.slice(0, 5).trim()}-${n}`;
        const model = name.replace('t/', 'p/');
        await world.apply(progressive(name, model));
        for (let version = 0; version < 2; version += 1) {
          await world.versions.put(model);
          await converge();
        }
        const candidate = await digestOf(name, 2);
        const say = () => put(name, (force) => ({ ...force, candidate, share: 0.25, rollout: trial }));
        const crash = world.crashAt(n, when);
        const dies = async () => {
          await say();
          await converge();
        };
        await expect(dies()).rejects.toBeInstanceOf(Crash);
        crash.stop();
        await world.restart();
        await say(); // a rollout says again what it said
        await converge();
        expect(router.arms(name)).toEqual(['2 0.25', '1 0.75']);
      }
    },
  );

  it('a pass that changes nothing writes nothing, and asks nobody', async () => {
    await onTrial('t/o', 'p/o');
    const rows = () =>
      world.database.query(
        `select t.updated_at as traffic, e.status as endpoint from endpoint_traffic t join endpoints e on e.name = t.endpoint where t.endpoint = 't/o'`,
      );
    const before = await rows();
    await world.database.query('delete from work where kind = $1', [rolloutWork]);
    await world.get(WorkStore).enqueue(null, 'endpoint', 't/o');
    await world.settle();
    await put('t/o', (force) => ({ ...force }));
    expect(await rows()).toEqual(before);
    expect(await world.database.query('select key from work where kind = $1', [rolloutWork])).toEqual([]);
  });
});
