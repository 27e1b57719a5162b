import { type DesiredModel, type Route, type RouteTarget, routeTarget, routingTable } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { downgradeMember, downgradeModel, downgradeRoute } from './document.downgrade.plan.ts';

const target = (deployment: string, version: number, more: Partial<RouteTarget> = {}): RouteTarget => ({
  deployment,
  version,
  tritonModel: `m-${deployment}`,
  servers: ['a', 'b'],
  maxBatchSize: 1,
  inputs: [],
  outputs: [],
  processing: { builtin: 'passthrough', options: {} },
  files: [],
  ...more,
});
const module_ = { name: 'a', number: 1, digest: 'd'.repeat(64), facts: { hooks: ['preprocess' as const], body: 'json' as const }, files: [] }; // biome-ignore format: one record
const route = (targets: RouteTarget[], shares: Record<string, number>): Route => ({
  arms: Object.entries(shares).map(([deployment, share]) => ({ deployment, share })),
  targets,
  access: 'key',
  timeoutMs: 1,
  maxBodyBytes: 1,
  idempotent: true,
});
const shown = ({ targets, arms }: Route) => [
  targets.map(({ deployment, servers }) => `${deployment}@${servers.join('')}`).join(' '),
  arms.map(({ deployment, share }) => `${deployment}=${share}`).join(' '),
];

describe('a route for a reader of the schema before', () => {
  it.each<[string, Route, string, string]>([
    ['that says nothing new stays as it is', route([target('x', 2), target('y', 1)], { x: 0.5, y: 0.5 }), 'x@ab y@ab', 'x=0.5 y=0.5'],
    ['with another name on one server loses that server', route([target('x', 1, { models: { b: 'other' } })], { x: 1 }), 'x@a', 'x=1'],
    ['with the same name said once more loses nothing', route([target('x', 1, { models: { b: 'm-x' } })], { x: 1 }), 'x@ab', 'x=1'],
    ['with other names everywhere loses the target', route([target('x', 2, { models: { a: 'o', b: 'o' } }), target('y', 1)], { x: 0.9, y: 0.1 }), 'y@ab', 'y=1'],
    ['with a version to ask for loses the target, and the newest of what is left takes all', route([target('x', 3, { tritonVersion: '7' }), target('y', 1), target('z', 2)], { x: 1 }), 'y@ab z@ab', 'z=1'],
    ['with a module loses the target: it would be answered without it', route([target('x', 2, { processing: { module: module_, options: {} } }), target('y', 1)], { x: 1 }), 'y@ab', 'y=1'],
    ['without a model loses the target', route([target('x', 2, { modelless: true, servers: [] }), target('y', 1)], { x: 1 }), 'y@ab', 'y=1'],
    ['with nothing left is empty', route([target('x', 1, { tritonVersion: '7' })], { x: 1 }), '', ''],
    ['shares what is left', route([target('x', 3, { tritonVersion: '7' }), target('y', 1), target('z', 2)], { x: 0.5, y: 0.25, z: 0.25 }), 'y@ab z@ab', 'y=0.5 z=0.5'],
  ])('%s', (_what, given, targets, arms) => expect(shown(downgradeRoute(given))).toEqual([targets, arms])); // biome-ignore format: one row each

  it('names none of the new fields', () => {
    const old = downgradeRoute(route([target('x', 1, { models: { b: 'other' } })], { x: 1 }));
    expect(JSON.stringify(old)).not.toMatch(/models|tritonVersion/);
  });
});

describe('a model for a reader of the schema before', () => {
  const engine = {
    platform: 'onnxruntime_onnx',
    maxBatchSize: 1,
    instances: [],
    inputs: [],
    outputs: [],
    parameters: {},
  };
  const model = { files: [], engine, digest: 'd' } as unknown as DesiredModel;
  it('is held back when it needs others, and stays as it is when not', () => {
    expect(downgradeModel({ ...model, needs: ['x'] })).toBeNull();
    expect(downgradeModel({ ...model, needs: [] })).toEqual({ ...model, needs: [] });
    expect(downgradeModel(model)).toBe(model);
  });
  it('a removal stays one, and other members are not touched', () => {
    expect(downgradeMember('endpoints', null)).toBeNull();
    expect(downgradeMember('models', null)).toBeNull();
    expect(downgradeMember('servers', { http: 'h' })).toEqual({ http: 'h' });
  });
});

describe('readers', () => {
  it('ignore fields that they do not know, at every level', () => {
    const newer = { ...target('x', 1), shadow: true } as RouteTarget;
    expect(routeTarget.parse(newer)).not.toHaveProperty('shadow');
    const table = {
      lineage: '00000000-0000-4000-8000-000000000000', revision: 1, schema: 2, confirmed: true, publishedAt: '', routers: 1,
      endpoints: { e: { ...route([newer], { x: 1 }), mirror: 'other' } }, servers: { a: { http: 'h', grpc: 'g', zone: 'z' } }, keys: {}, rollouts: {},
    }; // biome-ignore format: one table
    const read = routingTable.parse(table);
    expect(JSON.stringify(read)).not.toMatch(/shadow|mirror|zone|rollouts/);
    expect(read.endpoints['e']!.targets[0]!.deployment).toBe('x');
  });
});
