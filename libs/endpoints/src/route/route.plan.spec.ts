import { type EndpointSpecInput, route as routeSchema } from '@perch/contracts';
import type { Placement } from '@perch/fleet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeploymentBody } from '../resolve/engine.plan.ts';
import { parseSpec } from '../spec.plan.ts';
import { buildRoute, type RoutableDeployment } from './route.plan.ts';
import { routeFault } from './routing-table.plan.ts';

const body = (maxBatchSize = 0): DeploymentBody => ({
  variants: [{
    tritonModel: 'm', needs: [],
    requires: { backend: 'onnxruntime', gpu: false, tensorrt: null, onnx: null, memoryBytes: null },
    model: {
      digest: 'i', files: [],
      engine: {
        platform: 'onnxruntime_onnx', backend: 'onnxruntime', maxBatchSize, dynamicBatching: null, instances: [],
        inputs: [{ name: 'x', type: 'FP32', dims: [4] }], outputs: [], parameters: {}, defaultModelFilename: null, config: null,
      },
    },
  }],
  processing: { builtin: 'passthrough', options: {} },
  processingFiles: [],
}); // biome-ignore format: one record

const placed = (server: string, more: Partial<Placement> = {}): Placement => ({
  endpoint: 'e', deployment: 'd', server, serverName: server, tritonModel: 'm', state: 'active', proved: true,
  routedRevision: null, unroutedRevision: null, presence: 'live',
  observed: { state: 'ready', reason: null, inputs: null, outputs: null, maxBatchSize: null }, ...more,
}); // biome-ignore format: one record

const ready = (version: number, more: Partial<RoutableDeployment> = {}): RoutableDeployment => ({
  id: `d${version}`, version, digest: `x${version}`, tritonModel: `m-v${version}`, body: body(), wanted: true, unusable: false, placements: [placed('s1')], ...more,
}); // biome-ignore format: one record

const spec = (traffic: EndpointSpecInput['traffic']) =>
  parseSpec({ name: 'e', model: { project: 'p', name: 'm', maxVersions: 9 }, traffic });
const arms = (traffic: EndpointSpecInput['traffic'], deployments: RoutableDeployment[]) =>
  buildRoute(spec(traffic), deployments).arms.map(({ deployment, share }) => `${deployment} ${share}`);

describe('how traffic is shared', () => {
  const spare = (version: number) => ready(version, { wanted: false });
  it.each<[string, EndpointSpecInput['traffic'], RoutableDeployment[], string[]]>([
    ['nothing ready', undefined, [], []],
    ['the newest takes all', undefined, [ready(1), ready(3), ready(2)], ['d3 1']],
    ['a wanted one before a newer one that only fills in', undefined, [ready(4), spare(5)], ['d4 1']],
    ['what fills in serves when nothing wanted can', undefined, [spare(5), spare(4)], ['d5 1']],
    ['weights', { mode: 'weighted', weights: { '1': 3, '2': 1 } }, [ready(1), ready(2)], ['d2 0.25', 'd1 0.75']],
    ['weights of ready ones only', { mode: 'weighted', weights: { '1': 90, '2': 10 } }, [ready(2)], ['d2 1']],
    [
      'versions without a weight get nothing',
      { mode: 'weighted', weights: { '1': 1 } },
      [ready(1), ready(2)],
      ['d1 1'],
    ],
    [
      'nothing with weight can serve: the newest does',
      { mode: 'weighted', weights: { '9': 1 } },
      [ready(1), ready(2)],
      ['d2 1'],
    ],
    [
      'newest first',
      { mode: 'weighted', newestFirst: [0.1, 0.9] },
      [ready(1), ready(2), ready(3)],
      ['d3 0.1', 'd2 0.9'],
    ],
    ['newest first with one', { mode: 'weighted', newestFirst: [0.1, 0.9] }, [ready(1)], ['d1 1']],
    [
      'newest first keeps its shares while a newer one loads',
      { mode: 'weighted', newestFirst: [0.1, 0.9] },
      [ready(2), spare(1)],
      ['d2 0.1', 'd1 0.9'],
    ],
    ['the newest may have nothing', { mode: 'weighted', newestFirst: [0, 1] }, [ready(1), ready(2)], ['d1 1']],
    [
      'what routers cannot serve stays a target without traffic',
      undefined,
      [ready(2, { unusable: true }), spare(1)],
      ['d1 1'],
    ],
    [
      '… nor does it count among the newest',
      { mode: 'weighted', newestFirst: [0.1, 0.9] },
      [ready(3, { unusable: true }), ready(2), ready(1)],
      ['d2 0.1', 'd1 0.9'],
    ],
    ['… unless there is nothing else', undefined, [ready(2, { unusable: true })], ['d2 1']],
  ])('%s', (_what, traffic, deployments, expected) => expect(arms(traffic, deployments)).toEqual(expected));

  it('each version has one target: the wanted one', () => {
    const old = ready(1, { id: 'old', wanted: false });
    expect(buildRoute(spec(undefined), [old, ready(1)]).targets.map(({ deployment }) => deployment)).toEqual(['d1']);
    expect(buildRoute(spec(undefined), [old]).targets.map(({ deployment }) => deployment)).toEqual(['old']);
  });

  it('a version that routers cannot serve stays a target, so that they go on trying', () => {
    const route = buildRoute(spec(undefined), [ready(2, { unusable: true }), ready(1)]);
    expect(route.targets.map(({ version }) => version)).toEqual([2, 1]);
  });

  it('… also where another one serves the same version, beside it and without a share', () => {
    const bad = ready(2, { id: 'bad', unusable: true });
    const old = ready(2, { id: 'old', wanted: false });
    const route = buildRoute(spec({ mode: 'weighted', weights: { '1': 1, '2': 3 } }), [bad, old, ready(1)]);
    expect(route.targets.map(({ deployment }) => deployment)).toEqual(['old', 'd1', 'bad']);
    expect(route.arms).toEqual([
      { deployment: 'old', share: 0.75 },
      { deployment: 'd1', share: 0.25 },
    ]);
    expect(routeFault(route, new Set(['s1']))).toBeUndefined();
  });

  it('what has no model is routed to no server', () => {
    const none = ready(1, { body: { ...body(), variants: [] }, placements: [] });
    const route = buildRoute(spec(undefined), [none]);
    expect(route.targets[0]).toMatchObject({ modelless: true, servers: [], inputs: [], outputs: [], maxBatchSize: 0 });
    expect(routeSchema.parse(route)).toEqual(route);
    expect(routeFault(route, new Set())).toBeUndefined();
    expect(buildRoute(spec(undefined), [ready(1, { placements: [] })]).targets).toEqual([]);
  });

  it('tensors come from the model server once it told them, else from the settings with the batch in front', () => {
    const told = {
      state: 'ready',
      reason: null,
      inputs: [{ name: 'x', datatype: 'FP32' as const, shape: [-1, 9] }],
      outputs: [],
      maxBatchSize: 7,
    };
    const { targets } = buildRoute(spec(undefined), [
      ready(1, { body: body(8) }),
      ready(2, { placements: [placed('s1', { observed: told })] }),
    ]);
    expect(targets.map(({ maxBatchSize, inputs }) => [maxBatchSize, inputs[0]!.shape])).toEqual([
      [7, [-1, 9]],
      [8, [-1, 4]],
    ]);
  });

  const placement = fc.record({
    server: fc.constantFrom('s1', 's2', 's3'),
    proved: fc.boolean(),
    up: fc.boolean(),
    state: fc.constantFrom('active' as const, 'leaving' as const),
  });
  const deployments = fc.uniqueArray(
    fc.record({
      version: fc.integer({ min: 1, max: 5 }),
      wanted: fc.boolean(),
      places: fc.uniqueArray(placement, { selector: ({ server }) => server, maxLength: 3 }),
    }),
    { selector: ({ version, wanted }) => `${version} ${wanted}`, maxLength: 8 },
  );
  const traffics = fc.oneof(
    fc.constant(undefined),
    fc
      .array(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 4 })
      .filter((w) => w.some((n) => n > 0))
      .map((newestFirst) => ({ mode: 'weighted' as const, newestFirst })),
    fc
      .dictionary(fc.constantFrom('1', '2', '3'), fc.integer({ min: 1, max: 100 }), { minKeys: 1 })
      .map((weights) => ({ mode: 'weighted' as const, weights })),
  );
  it('every route may be published: proved servers only, shares of 1, one target a version', () => {
    fc.assert(
      fc.property(traffics, deployments, (traffic, rows) => {
        const world = rows.map(({ version, wanted, places }, at) =>
          ready(version, {
            id: `d${at}`,
            wanted,
            placements: places.map(({ server, proved, up, state }) =>
              placed(server, {
                proved,
                state,
                observed: {
                  state: up ? 'ready' : 'loading',
                  reason: null,
                  inputs: null,
                  outputs: null,
                  maxBatchSize: null,
                },
              }),
            ),
          }),
        );
        const route = buildRoute(spec(traffic), world);
        expect(routeSchema.safeParse(route).success).toBe(true);
        expect(routeFault(route, new Set(['s1', 's2', 's3']))).toBeUndefined();
        expect(new Set(route.targets.map(({ version }) => version)).size).toBe(route.targets.length);
        for (const target of route.targets) {
          const places = world.find(({ id }) => id === target.deployment)!.placements;
          for (const server of target.servers)
            expect(places.find((place) => place.server === server)).toMatchObject({ proved: true, state: 'active' });
        }
        expect(route.targets.length > 0).toBe(
          world.some(({ placements }) => placements.some(({ proved, state }) => proved && state === 'active')),
        );
      }),
    );
  });
});
