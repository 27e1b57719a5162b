import { type EndpointSpec, type Route, splitSpec, type WhyStep } from '@perch/contracts';
import type { PlacementSight } from '@perch/fleet';
import { describe, expect, it } from 'vitest';
import { parseSpec } from '../spec.plan.ts';
import { askedVersion, planWhy } from './why.plan.ts';
import type { WhyDeployment, WhyFacts, WhyRouter } from './why-facts.ts';

const at = '2026-01-01T00:00:00.000Z';
const spec = (change: object = {}): EndpointSpec =>
  parseSpec({ name: 'text/a', model: { project: 'nlp', name: 'a' }, ...change });
const rule = (model: object, more: object = {}) => ({
  spec: spec({ model: { project: 'nlp', name: 'a', ...model }, ...more }),
});
const version = (number: number, state: 'uploading' | 'draft' | 'published' | 'archived', tags: string[] = []) => ({
  number,
  state,
  tags,
});
const deployment = (change: Partial<WhyDeployment> = {}): WhyDeployment => ({
  id: 'd1',
  version: 1,
  state: 'ready',
  reason: null,
  since: at,
  deployable: true,
  ...change,
});
const sight = (
  change: Partial<PlacementSight> = {},
  server: Partial<PlacementSight['server']> = {},
): PlacementSight => ({
  deployment: 'd1',
  tritonModel: 'a-v1-0123456789ab',
  state: 'active',
  proved: true,
  placedAt: at,
  observed: { state: 'ready', reason: null, since: at },
  memory: null,
  told: true,
  waits: null,
  routedRevision: null,
  unroutedRevision: null,
  unroutedMs: null,
  ...change,
  server: {
    id: 's1',
    name: 'gpu-1',
    pool: 'default',
    presence: 'live',
    lastSeenAt: at,
    toldRevision: 4,
    drainedBy: null,
    observed: {
      lineage: 'l',
      revision: 4,
      heldRemovals: [],
      triton: { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 1 },
      disk: { freeBytes: 1e12, cacheBytes: 0 },
    },
    ...server,
  },
});
const observed = (state: string, reason: string | null = null) =>
  sight({ observed: { state, reason, since: at }, proved: false });
const silent = (change: Partial<PlacementSight> = {}) => sight(change, { presence: 'silent' });
const withServer = (change: object) =>
  sight({ observed: null, proved: false }, { observed: { ...sight().server.observed!, ...change } });
const route = (share = 1, targets: [string, number][] = [['d1', 1]]): Route => ({
  arms: share > 0 ? [{ deployment: 'd1', share }] : [{ deployment: 'd2', share: 1 }],
  targets: targets.map(([id, number]) => ({
    deployment: id,
    version: number,
    tritonModel: `a-v${number}-0123456789ab`,
    servers: ['s1'],
    maxBatchSize: 0,
    inputs: [],
    outputs: [],
    processing: { builtin: 'passthrough', options: {} },
    files: [],
  })),
  access: 'key',
  timeoutMs: 1,
  maxBodyBytes: 1,
  idempotent: true,
});
const router = (change: Partial<WhyRouter> = {}): WhyRouter => ({
  name: 'r1',
  live: true,
  lastSeenAt: at,
  lineage: 'l',
  revision: 9,
  held: false,
  problems: {},
  ...change,
});
const served: WhyFacts = {
  name: 'text/a',
  generation: 3,
  spec: spec(),
  changedAt: at,
  changedBy: 'olga',
  status: {
    phase: 'ready',
    reason: 'serving',
    message: '',
    generationSeen: 3,
    servingVersions: [1],
    nextVersion: null,
  },
  versions: [version(1, 'published', ['prod'])],
  deployments: [deployment()],
  placements: [sight()],
  wantedRoute: route(),
  published: { route: route(), since: 8 },
  lineage: 'l',
  routers: [router()],
};
const unrouted = { wantedRoute: route(1, []), published: { route: route(1, []), since: 8 } };
const loading = (...placements: PlacementSight[]): Partial<WhyFacts> => ({
  deployments: [deployment({ state: 'loading' })],
  placements,
  ...unrouted,
});
const two = { versions: [version(1, 'published'), version(2, 'published')] };

describe('why a version is not served: one row a cause', () => {
  it.each<[string, Partial<WhyFacts>, number | null, WhyStep['step'], WhyStep['state'], RegExp, RegExp]>([
    ['the endpoint was removed', { spec: null }, 1, 'endpoint', 'failed', /removed by olga/, /rollback text\/a --to 2/],
    ['it was stopped', { spec: spec({ stopped: true }) }, 1, 'endpoint', 'failed', /stopped by olga/, /endpoint start text\/a/],
    ['nobody looked yet', { generation: 4, ...unrouted }, 1, 'endpoint', 'waiting', /generation 4/, /second/],
    ['no model', { versions: [] }, null, 'model', 'failed', /nlp\/a does not exist/, /model upload nlp\/a/],
    ['no external Triton that holds it', { spec: spec({ model: { source: 'gpu-box/resnet' } }), versions: [] }, null, 'model', 'failed', /no external server gpu-box.* holds resnet/, /load it in that Triton/],
    ['the rule names others', { ...rule({ select: { versions: [3] } }), versions: [version(2, 'published'), version(3, 'published')] }, 2, 'rule', 'failed', /names versions 3/, /endpoint update/],
    ['not held by a Triton of others', loading(sight({ observed: null, proved: false, tritonModel: 'resnet/1' })), 1, 'server', 'waiting', /does not hold it/, /load it there/],
    ['no such version', {}, 7, 'version', 'failed', /version 7 .* does not exist; there are 1/, /upload a new version/],
    ['still uploading', { versions: [version(2, 'uploading')] }, 2, 'version', 'waiting', /being uploaded/, /same upload again/],
    ['archived', { versions: [version(2, 'archived')] }, 2, 'version', 'failed', /archived/, /model restore nlp\/a@2/],
    ['a draft', { versions: [version(2, 'draft')] }, 2, 'rule', 'failed', /version 2 is a draft/, /model publish nlp\/a@2/],
    [
      'a tag is missing of all',
      { ...rule({ select: { tags: ['prod', 'eu'] } }), versions: [version(2, 'published', ['prod'])] },
      2, 'rule', 'failed', /lacks the tags eu that the rule wants; it has prod/, /--add eu/,
    ],
    [
      'none of any',
      { ...rule({ select: { tags: ['prod', 'eu'], tagMatch: 'any' } }), versions: [version(2, 'published')] },
      2, 'rule', 'failed', /any one of prod, eu .* it has no tags/, /--add prod/,
    ],
    ['another one is fixed', { ...rule({ version: 1 }), ...two }, 2, 'rule', 'failed', /serves version 1 alone/, /--model nlp\/a@2/],
    ['older than the newest', { ...two, ...unrouted, deployments: [] }, 1, 'rule', 'failed', /newest version .*\(2\), and version 1 is older/, /--max-versions 2/],
    ['no deployment yet', { deployments: [], ...unrouted }, 1, 'deployment', 'waiting', /no deployment/, /second/],
    [
      'files that cannot be laid out',
      { deployments: [deployment({ state: 'failed', deployable: false, reason: 'no .onnx file' })], ...unrouted },
      1, 'deployment', 'failed', /cannot be deployed: no \.onnx file/, /engine settings/,
    ],
    [
      'no server has room',
      { deployments: [deployment({ state: 'placing', reason: 'gpu-1: 3 GiB too few' })], placements: [], ...unrouted },
      1, 'placement', 'failed', /0 of the 1 servers .*: gpu-1: 3 GiB too few/, /make room/,
    ],
    ['not told', loading(sight({ observed: null, told: false, proved: false })), 1, 'server', 'waiting', /not told of it yet/, /control plane/],
    [
      'told, and not heard',
      loading(sight({ observed: null, proved: false }, { toldRevision: 5 })),
      1, 'server', 'waiting', /told \(revision 5\) and follows revision 4/, /agent/,
    ],
    ['heard, and silent of it', loading(sight({ observed: null, proved: false })), 1, 'server', 'waiting', /says nothing of the model/, /^$/],
    ['never reported', loading(sight({ observed: null }, { observed: null })), 1, 'server', 'waiting', /not reported yet/, /^$/],
    ['pulling', loading(observed('pulling', '40 of 100 MB')), 1, 'server', 'waiting', /fetches its files: 40 of 100 MB/, /^$/],
    ['staging', loading(observed('staging')), 1, 'server', 'waiting', /into the repository/, /^$/],
    ['loading', loading(observed('loading')), 1, 'server', 'waiting', /is loading it/, /^$/],
    ['warming', loading(observed('warming')), 1, 'server', 'waiting', /warms it up/, /^$/],
    ["Triton's own reason", loading(observed('failed', 'unexpected input x')), 1, 'server', 'failed', /unexpected input x/, /another version/],
    ['held back', loading(observed('failed', 'crashes its server')), 1, 'server', 'failed', /crashes its server/, /held back/],
    ['stuck', loading(observed('stuck')), 1, 'server', 'failed', /does not come to an end/, /restart/],
    ['a silent server', loading(silent({ proved: false, observed: null })), 1, 'server', 'waiting', /gpu-1 is silent/, /agent/],
    ['a lost server', loading(sight({ observed: null }, { presence: 'lost' })), 1, 'server', 'waiting', /gpu-1 is lost/, /agent/],
    [
      'a dead Triton',
      loading(withServer({ triton: { live: false, ready: false, name: '', version: '', gpus: 0 }, supervision: { state: 'backing_off', restarts: 3, lastExit: 'killed for memory', console: [] } })),
      1, 'server', 'waiting', /backing off, 3 restarts\), ended last: killed for memory/, /console/,
    ],
    ['not published', { published: { route: null, since: null } }, 1, 'route', 'waiting', /not published yet/, /log/],
    ['no router', { routers: [router({ live: false })] }, 1, 'router', 'waiting', /no router is live/, /start a router/],
    ['a router is behind', { routers: [router({ revision: 7 })] }, 1, 'router', 'waiting', /follows revision 7, the route is of revision 8/, /log/],
    ['a router of another history', { routers: [router({ lineage: 'old' })] }, 1, 'router', 'waiting', /follows revision/, /log/],
    ['a router holds back', { routers: [router({ held: true })] }, 1, 'router', 'waiting', /unconfirmed/, /fleet confirm/],
    ['a router cannot', { routers: [router({ problems: { d1: 'bad tokenizer' } })] }, 1, 'router', 'failed', /bad tokenizer/, /processing/],
    [
      'no weight',
      {
        ...two,
        ...rule({ maxVersions: 2 }, { traffic: { mode: 'weighted', weights: { '2': 1 } } }),
        published: { route: route(0, [['d1', 1], ['d2', 2]]), since: 8 },
      },
      1, 'traffic', 'failed', /weight is 0: version 2 gets the traffic/, /\/serve\/text\/a\/1/,
    ],
  ])('%s', (_what, change, asked, step, state, message, todo) => {
    const why = planWhy({ ...served, ...change }, asked);
    const found = why.chain.filter((one) => one.step === step && one.state === state);
    expect(found.map((one) => one.message).join('; ')).toMatch(message);
    expect(found[0]!.whatToDo ?? '').toMatch(todo);
    expect(why.served).toBe(false);
    expect(why.summary).toMatch(/text\/a/);
  }); // biome-ignore format: rows
});

describe('what is served', () => {
  it('has every link in its order, and nothing to do', () => {
    const why = planWhy(served, null);
    expect(why).toMatchObject({
      served: true,
      version: 1,
      summary: 'version 1 of endpoint text/a is served and gets 100 % of the traffic',
    });
    expect(why.chain.map(({ step, state }) => [step, state])).toEqual(
      ['endpoint', 'model', 'version', 'rule', 'deployment', 'placement', 'server', 'route', 'router', 'traffic'].map(
        (step) => [step, 'ok'],
      ),
    );
    expect(why.chain.every(({ whatToDo }) => whatToDo === null)).toBe(true);
  });
  it('is served by those routers that follow, and says which do not', () => {
    const why = planWhy({ ...served, routers: [router(), router({ name: 'r2', revision: 7 })] }, 1);
    expect(why.served).toBe(true);
    expect(why.summary).toContain('but router r2 follows revision 7');
  });
  it('is served although one of its servers failed, and says so', () => {
    const why = planWhy(
      {
        ...served,
        placements: [
          sight(),
          { ...observed('failed', 'no memory'), server: { ...sight().server, id: 's2', name: 'gpu-2' } },
        ],
      },
      1,
    );
    expect(why).toMatchObject({ served: true, summary: expect.stringContaining('but server gpu-2: no memory') });
  });
  it('names the formats that failed on a server before the one it serves', () => {
    const earlier = [{ tritonModel: 'a-v1-plan', reason: 'built by another TensorRT' }];
    const { chain } = planWhy({ ...served, placements: [sight({ earlier })] }, 1);
    expect(chain.find(({ step }) => step === 'server')!.message).toBe(
      'server gpu-1 serves it (a-v1-plan failed there: built by another TensorRT)',
    );
  });
  it('serves on while its server is drained, and says what that waits for', () => {
    const placements = [sight({ waits: 'to be ready on gpu-2' }, { drainedBy: 'olga' })];
    const why = planWhy({ ...served, placements }, 1);
    expect(why.served).toBe(true);
    expect(why.chain.find(({ step }) => step === 'server')).toMatchObject({
      state: 'ok',
      message: 'server gpu-1 serves it, and is drained by olga (waits to be ready on gpu-2)',
    });
  });
  it('because a split names it, whatever the rule says and without a share of its own', () => {
    const draft = [version(1, 'draft'), version(2, 'published')];
    const split = splitSpec.parse({ name: 'ab', targets: ['text/a/1'], weights: [1] });
    const published = { route: route(0, [['d1', 1], ['d2', 2]]), since: 8 }; // biome-ignore format: one row reads better
    const facts = { ...served, versions: draft, published, wantedRoute: published.route };
    expect(planWhy(facts, 1).served).toBe(false);
    const why = planWhy({ ...facts, splits: [{ name: 'ab', spec: split }] }, 1);
    expect(why.served).toBe(true);
    expect(why.chain.filter(({ step }) => ['rule', 'traffic'].includes(step)).map(({ message }) => message)).toEqual([
      'split ab names it, so it is served whatever the rule says',
      'split ab sends to it; under the name text/a it has no share',
    ]);
  });
  it('tells of a version that serves in the place of a newer one', () => {
    const why = planWhy({ ...served, ...two }, 1);
    expect(why).toMatchObject({
      served: true,
      summary: expect.stringContaining('it serves on until one that is wanted is ready'),
    });
  });
});

describe('which version is meant when none is named', () => {
  it.each<[string, Partial<WhyFacts>, number | null]>([
    ['the fixed one', { ...rule({ version: 3 }), versions: [version(9, 'published')] }, 3],
    ['the newest, whatever its state', { versions: [version(1, 'published'), version(4, 'uploading')] }, 4],
    ['not an archived one', { versions: [version(1, 'published'), version(4, 'archived')] }, 1],
    ['unless all are', { versions: [version(4, 'archived')] }, 4],
    ['none of a model that has none', { versions: [] }, null],
  ])('%s', (_what, change, expected) => {
    expect(askedVersion({ ...served, ...change })).toBe(expected);
  });
});

describe('modules', () => {
  const target = { deployment: 'd1', version: 1, tritonModel: 'a', servers: ['s1'], maxBatchSize: 0, inputs: [], outputs: [], processing: { builtin: 'passthrough', options: {} }, files: [] }; // biome-ignore format: one record
  const route: Route = { arms: [{ deployment: 'd1', share: 1 }], targets: [target], access: 'key', timeoutMs: 1, maxBodyBytes: 1, idempotent: true }; // biome-ignore format: one record
  const router = (more: Partial<WhyRouter> = {}): WhyRouter => ({
    name: 'r1', live: true, lastSeenAt: at, lineage: 'l', revision: 9, held: false, problems: {}, ...more,
  }); // biome-ignore format: one record
  const module = 'module ner/rules@3, isolation worker';
  const facts = (own: Partial<WhyDeployment>, routers: WhyRouter[], placements = [sight()]): WhyFacts => ({
    name: 'text/a',
    generation: 1,
    spec: spec(),
    changedAt: at,
    changedBy: 'olga',
    status: {
      phase: 'ready',
      reason: 'serving',
      message: '',
      generationSeen: 1,
      servingVersions: [1],
      nextVersion: null,
    },
    versions: [version(1, 'published')],
    deployments: [deployment({ module, ...own })],
    placements,
    wantedRoute: route,
    published: { route, since: 5 },
    lineage: 'l',
    routers,
  });
  const steps = (given: WhyFacts) =>
    planWhy(given, null).chain.map(({ step, state, message }) => `${step} ${state}: ${message}`);

  it('are named with where they run', () => {
    expect(steps(facts({}, [router()]))).toContain(`deployment ok: its deployment is ready (${module})`);
  });

  it('that a router cannot load are named with the reason and what to do', () => {
    const why = planWhy(facts({}, [router({ problems: { d1: 'x is not defined' } })]), null);
    expect(why.chain.at(-2)).toMatchObject({
      step: 'router',
      state: 'failed',
      message: `router r1 cannot serve it (${module}): x is not defined`,
      whatToDo: expect.stringMatching(/^correct module ner\/rules@3 .*"perch endpoint update text\/a --processing …"$/),
    });
  });

  it('that a router still loads are waited for', () => {
    const loading = { d1: 'module ner/rules@3 is still being loaded' };
    expect(steps(facts({}, [router(), router({ name: 'r2', loading })]))).toContain(
      'router waiting: router r2: module ner/rules@3 is still being loaded; what served before goes on there',
    );
  });

  it('without a model want no server', () => {
    expect(steps(facts({ modelless: true }, [router()], []))).toContain(
      'placement ok: it has no model: its module does all the work, and no server is wanted',
    );
  });
});
