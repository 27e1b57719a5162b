import { describe, expect, it } from 'vitest';
import {
  currentPlacement,
  gibibyte,
  needed,
  plannedDeployment,
  plannedServer,
  serverFacts,
  variant,
} from '../../../../test/support/placement.ts';
import { planPlacement } from './placement.plan.ts';
import {
  type CurrentPlacement,
  type ModelFacts,
  noFacts,
  type PlannedDeployment,
  type PlannedServer,
} from './placement-world.ts';

const live = (id: string, models = 0, more: Partial<PlannedServer> = {}) => plannedServer(id, { models, ...more });
const silent = (id: string) => plannedServer(id, { presence: 'silent' });
const drained = (id: string, drain: 'orderly' | 'forced' = 'orderly') => plannedServer(id, { drain });
const on = (id: string, host: string, models = 0) => live(id, models, { facts: serverFacts({ host }) });
const sized = (id: string, totalGib: number, placedGib: number) =>
  live(id, 0, { facts: serverFacts({ host: id, ramBytes: totalGib * gibibyte }), placed: { ramBytes: placedGib * gibibyte, gpuBytes: 0 } }); // biome-ignore format: one row reads better
const wants = (replicas: number, more: Partial<PlannedDeployment> = {}) =>
  plannedDeployment('d', { replicas, ...more });
const at = (server: string, more: Partial<CurrentPlacement> = {}) => currentPlacement('d', server, more);
const failed = (server: string, more: Partial<CurrentPlacement> = {}) =>
  at(server, { ready: false, failure: 'bad file', ...more });
const loading = (server: string) => at(server, { ready: false });

interface Words {
  add: string[];
  leave: string[];
  yields: string[];
  short: string[];
  waits: string[];
}
const words = (plan: ReturnType<typeof planPlacement>): Words => ({
  add: plan.add.map(({ deployment, server, variant: { tritonModel }, instead }) =>
    `${deployment} ${server}${tritonModel === `m-${deployment}` ? '' : ` ${tritonModel}`}${instead ? ` instead of ${instead.tritonModel}` : ''}`), // biome-ignore format: one row reads better
  leave: plan.leave.map(({ deployment, server }) => `${deployment} ${server}`),
  yields: plan.yields.map(({ deployment, server, yields }) => `${deployment} ${server} ${yields}`),
  short: [...plan.short.values()],
  waits: plan.waits.map(({ server, waits }) => `${server}: ${waits}`),
});
const none: Words = { add: [], leave: [], yields: [], short: [], waits: [] };
type Row = [string, PlannedDeployment[], PlannedServer[], CurrentPlacement[], Partial<Words>, Partial<ModelFacts>?];
const check = (
  _what: string,
  deployments: Row[1],
  servers: Row[2],
  current: Row[3],
  expected: Row[4],
  facts?: Row[5],
) =>
  expect(words(planPlacement(deployments, servers, current, { ...noFacts, ...facts }))).toEqual({
    ...none,
    ...expected,
  });

describe('which servers hold a deployment', () => {
  it.each<Row>([
    ['no servers', [wants(1)], [], [], { short: ['no live server in its pool'] }],
    ['the only one', [wants(1)], [live('a')], [], { add: ['d a'] }],
    ['the least loaded', [wants(1)], [live('a', 5), live('b', 1), live('c', 3)], [], { add: ['d b'] }],
    ['equal ones by id', [wants(2)], [live('c'), live('b'), live('a')], [], { add: ['d a', 'd b'] }],
    ['one that holds the same model anyway', [wants(1)], [live('a'), live('b', 9)], [], { add: ['d b'] }, { held: new Set(['b m-d']) }],
    ['one that it is just leaving', [wants(1)], [live('a'), live('b', 9)], [at('b', { leaving: true })], { add: ['d b'] }],
    ['the emptier one by memory, not by models', [wants(1)], [sized('a', 16, 8), { ...sized('b', 16, 2), models: 9 }], [], { add: ['d b'] }],
    ['the emptier one, with no room for a second of its size', [wants(1, { variants: [variant('m-d', {}, { bytes: 2 * gibibyte })] })], [sized('a', 8, 0), sized('b', 64, 40)], [], { add: ['d a'] }],
    ['the fuller one that has room for two more of its size', [wants(1, { spare: 2, variants: [variant('m-d', {}, { bytes: 2 * gibibyte })] })], [sized('a', 8, 0), sized('b', 64, 40)], [], { add: ['d b'] }],
    ['any that has room for itself, where none has for more', [wants(1, { spare: 2, variants: [variant('m-d', {}, { bytes: 2 * gibibyte })] })], [sized('a', 8, 0)], [], { add: ['d a'] }],
    ['another host', [wants(2)], [on('a', 'x'), on('b', 'x'), on('c', 'y', 9)], [], { add: ['d a', 'd c'] }],
    ['another host than the one it has', [wants(2)], [on('a', 'x'), on('b', 'x'), on('c', 'y', 9)], [at('a')], { add: ['d c'] }],
    ['fewer than wanted', [wants(3)], [live('a')], [], { add: ['d a'], short: ['wants 3 servers, its pool has 1 live'] }],
    ['no new one on a silent server', [wants(1)], [silent('a'), live('b', 9)], [], { add: ['d b'] }],
    ['only silent ones', [wants(1)], [silent('a')], [], { short: ['no live server in its pool'] }],
    ['no new one on a drained server', [wants(1)], [drained('a'), live('b', 9)], [], { add: ['d b'] }],
    ['none on a server without an agent', [wants(1)], [live('a', 0, { external: true })], [], { short: ['wants 1 server, none can hold it (a: has no agent)'] }],
    ['in step', [wants(1)], [live('a'), live('b')], [at('a')], {}],
    ['what is placed on a silent server stays', [wants(1)], [silent('a'), live('b')], [at('a')], {}],
    ['one more', [wants(2)], [live('a'), live('b')], [at('a')], { add: ['d b'] }],
    ['one less, once the rest is ready', [wants(1)], [live('a'), live('b')], [at('a'), at('b')], { leave: ['d b'] }],
    ['one less: the one that is not ready', [wants(1)], [live('a'), live('b')], [loading('a'), at('b')], { leave: ['d a'] }],
    ['one less, but none is ready', [wants(1)], [live('a'), live('b')], [loading('a'), loading('b')], {}],
    ['a lost server, alone: it stays', [wants(1)], [], [at('lost')], { short: ['no live server in its pool'] }],
    ['a lost server: another one first', [wants(1)], [live('b')], [at('lost')], { add: ['d b'] }],
    ['a lost server: the other is not ready yet', [wants(1)], [live('b')], [at('lost'), loading('b')], {}],
    ['a lost server: the other is ready', [wants(1)], [live('b')], [at('lost'), at('b')], { leave: ['d lost'] }],
    ['one with the label that is wanted', [wants(1, { labels: { zone: 'b' } })], [live('a', 0, { labels: { zone: 'a' } }), live('b', 9, { labels: { zone: 'b' } })], [], { add: ['d b'] }],
    [
      'no server with the labels that are wanted', [wants(1, { labels: { zone: 'b', gpu: 'h100' } })], [live('a', 0, { labels: { zone: 'a' } })], [],
      { short: ['wants 1 server, none can hold it (a: is zone=a, not zone=b and has no label gpu=h100)'] },
    ],
    ['a label wanted from now on: another server first', [wants(1, { labels: { zone: 'b' } })], [live('a'), live('b', 0, { labels: { zone: 'b' } })], [at('a')], { add: ['d b'] }],
    ['a label wanted from now on: the other is ready', [wants(1, { labels: { zone: 'b' } })], [live('a'), live('b', 0, { labels: { zone: 'b' } })], [at('a'), at('b')], { leave: ['d a'] }],
    ['a label wanted from now on that no server has: it stays', [wants(1, { labels: { zone: 'b' } })], [live('a')], [at('a')], { short: ['wants 1 server, none can hold it (a: has no label zone=b)'] }],
    [
      'each on its own by load', [plannedDeployment('x'), plannedDeployment('y')], [live('a'), live('b')], [],
      { add: ['x a', 'y b'] },
    ],
    [
      'what one takes the next one does not find', [plannedDeployment('x', { variants: [variant('m-x', { memoryBytes: 3 * gibibyte })] }), plannedDeployment('y', { variants: [variant('m-y', { memoryBytes: 3 * gibibyte })] })],
      [sized('a', 6, 0)], [], { add: ['x a'], short: ['wants 1 server, none can hold it (a: wants 3.0 GiB, 2.7 GiB free)'] },
    ],
  ])('%s', check); // biome-ignore format: a table

  it.each<Row>([
    ['a drained server: another one first', [wants(1)], [drained('a'), live('b')], [at('a')], { add: ['d b'], waits: ['a: to be ready on b'] }],
    ['a drained server: the other one is not ready', [wants(1)], [drained('a'), live('b')], [at('a'), loading('b')], { waits: ['a: to be ready on b'] }],
    ['a drained server: the other one is ready', [wants(1)], [drained('a'), live('b')], [at('a'), at('b')], { leave: ['d a'] }],
    ['a drained server and nowhere to go', [wants(1)], [drained('a')], [at('a')], { short: ['wants 1 server, none can hold it (a: is being drained)'], waits: ['a: another server that can hold it'] }],
    ['by force: at once', [wants(1)], [drained('a', 'forced'), live('b')], [at('a')], { add: ['d b'], leave: ['d a'] }],
    ['as many as can be had elsewhere are ready', [wants(2)], [drained('a'), live('b')], [at('a'), at('b')], { leave: ['d a'], short: ['wants 2 servers, only 1 can hold it (a: is being drained)'] }],
    ['fewer than at least wanted elsewhere', [wants(2, { minReplicas: 2 })], [drained('a'), live('b')], [at('a'), at('b')], { short: ['wants 2 servers, only 1 can hold it (a: is being drained)'], waits: ['a: another server that can hold it'] }],
    ['both are drained: each stays until there is another', [wants(2)], [drained('a'), drained('b'), live('c')], [at('a'), at('b'), loading('c')], { short: ['wants 2 servers, only 1 can hold it (a, b: is being drained)'], waits: ['a: to be ready on c', 'b: to be ready on c'] }],
    ['the other one is silent', [wants(1)], [drained('a'), silent('b')], [at('a'), at('b')], { waits: ['a: server b to report again'] }],
  ])('%s', check); // biome-ignore format: a table
});

const plan = variant('plan', { backend: 'tensorrt', gpu: true, tensorrt: { version: '10.3.0', computeCapabilities: ['9.0'] } }, { engine: { platform: 'tensorrt_plan' } }); // biome-ignore format: one row reads better
const onnx = variant('onnx', { onnx: { opset: 17, ir: 8 } });
const both = (replicas = 1, more: Partial<PlannedDeployment> = {}) =>
  wants(replicas, { variants: [plan, onnx], ...more });
const gpuServer = (id: string, tensorrt: string, models = 0) =>
  live(id, models, { facts: serverFacts({ host: id, tensorrt, gpus: [{ uuid: 'u', name: 'H100', computeCapability: '9.0', totalBytes: 80 * gibibyte }] }) }); // biome-ignore format: one row reads better
const cpuServer = (id: string) => live(id, 0, { facts: serverFacts({ host: id }) });

describe('which variant a server gets', () => {
  it.each<Row>([
    ['the first that it can run', [both(2)], [gpuServer('g', '10.3.0'), cpuServer('c')], [], { add: ['d g plan', 'd c onnx'] }],
    ['the server that can run the better one, though it holds more', [both()], [gpuServer('g', '10.3.0', 9), cpuServer('c')], [], { add: ['d g plan'] }],
    ['another TensorRT: the next one', [both()], [gpuServer('g', '10.4.0')], [], { add: ['d g onnx'] }],
    ['failed for good: the next one there', [both()], [gpuServer('g', '10.3.0')], [failed('g', { tritonModel: 'plan' })], { add: ['d g onnx instead of plan'] }],
    ['failed by the last one: it stays, and says so', [both()], [gpuServer('g', '10.3.0'), cpuServer('c')], [failed('g', { tritonModel: 'onnx' })], {}],
    ['failed there before, forgotten elsewhere', [both()], [gpuServer('g', '10.3.0')], [], { add: ['d g onnx'] }, { failures: new Map([['g plan', 'bad plan']]) }],
    ['a silent server changes nothing', [both()], [plannedServer('g', { presence: 'silent' })], [failed('g', { tritonModel: 'plan' })], {}],
    [
      'what serves elsewhere and failed here is tried on another server', [wants(2)], [live('a'), live('b'), live('c')], [at('a'), failed('b')],
      { add: ['d c'] },
    ],
    ['then it leaves where it failed', [wants(2)], [live('a'), live('b'), live('c')], [at('a'), failed('b'), at('c')], { leave: ['d b'] }],
    ['what nobody proved is not carried further', [wants(2)], [live('a'), live('b'), live('c')], [failed('a'), loading('b')], { short: ['wants 2 servers, only 1 can hold it (a: failed there: bad file)'] }],
    [
      'after two failures no third is tried', [wants(2)], [live('a'), live('b'), live('c'), live('e')], [at('a'), failed('b'), failed('c')],
      { short: ['wants 2 servers, only 1 can hold it (b, c: failed there: bad file)'] },
    ],
  ])('%s', check); // biome-ignore format: a table
});

describe('why a server cannot hold it', () => {
  const shortFor = (deployment: PlannedDeployment, server: PlannedServer, facts?: Partial<ModelFacts>) =>
    words(planPlacement([deployment], [server], [], { ...noFacts, ...facts })).short;
  const full = sized('gpu-2', 4, 2.55);

  it('names each server with its reason, and servers with the same reason together', () => {
    const big = wants(2, { variants: [variant('m-d', { memoryBytes: 3.1 * gibibyte })] });
    expect(words(planPlacement([big], [full, drained('a'), drained('b'), sized('ok', 16, 0)], [])).short).toEqual([
      'wants 2 servers, only 1 can hold it (a, b: is being drained; gpu-2: wants 3.1 GiB, 1.2 GiB free)',
    ]);
  });

  it('memory: measured counts more than declared, declared more than the files', () => {
    const files = variant('m-d', {}, { bytes: 2 * gibibyte });
    expect(shortFor(wants(1, { variants: [files] }), full)[0]).toContain('wants 3.0 GiB, 1.2 GiB free');
    const declared = variant('m-d', { memoryBytes: gibibyte }, { bytes: 2 * gibibyte });
    expect(shortFor(wants(1, { variants: [declared] }), full)).toEqual([]);
    const measured = new Map([[`${declared.model.digest} cpu`, { ramBytes: 2 * gibibyte, gpuBytes: 0 }]]);
    expect(shortFor(wants(1, { variants: [declared] }), full, { measured })[0]).toContain('wants 2.0 GiB');
  });

  it('memory: what it needs counts too, unless it lies there already', () => {
    const heavy = variant('m-d', {}, { needs: [needed('tokens', 'tok', 'nlp/tok', 2 * gibibyte)] });
    expect(shortFor(wants(1, { variants: [heavy] }), full)[0]).toContain('wants 3.0 GiB');
    expect(shortFor(wants(1, { variants: [heavy] }), full, { held: new Set(['gpu-2 tokens']) })).toEqual([]);
  });

  it('a literal name stands for one model, or for successive ones of one endpoint or one used model', () => {
    const user = (endpoint: string) =>
      wants(1, { endpoint, variants: [variant('m-d', {}, { needs: [needed('tok-v2', 'tok', 'nlp/tok')] })] });
    const taken = (usedModel: string, tritonModel = 'tok-v1') => [
      { server: 'a', name: 'tok', tritonModel, endpoint: 'other', usedModel },
    ];
    expect(shortFor(user('e'), live('a'), { taken: taken('cv/tok') })).toEqual([
      'wants 1 server, none can hold it (a: holds cv/tok as tok for endpoint other)',
    ]);
    expect(shortFor(user('e'), live('a'), { taken: taken('nlp/tok') })).toEqual([]);
    expect(shortFor(user('other'), live('a'), { taken: taken('cv/tok') })).toEqual([]);
    expect(shortFor(user('e'), live('a'), { taken: taken('cv/tok', 'tok-v2') })).toEqual([]);
    expect(shortFor(user('e'), live('b'), { taken: taken('cv/tok') })).toEqual([]);
  });
});
