import type { Route, RouteTarget, RoutingTable } from '@perch/contracts';
import { silentLogger } from '@perch/platform';
import { describe, expect, it } from 'vitest';
import { DeploymentStore } from './deployment.store.ts';
import type { ProcessingStore } from './processing.store.ts';
import { ServingTables } from './serving-tables.ts';

const loaded = {};
const processing = { find: () => loaded, keepOnly: async () => undefined } as unknown as ProcessingStore;
const target = (deployment: string, fields: Partial<RouteTarget> = {}): RouteTarget => ({
  deployment, version: 1, tritonModel: 'm', servers: ['a'], maxBatchSize: 0, inputs: [], outputs: [],
  processing: { builtin: 'passthrough', options: {} }, files: [], ...fields,
}); // biome-ignore format: one record
const route = (...targets: RouteTarget[]): Route => ({
  arms: targets.map(({ deployment }) => ({ deployment, share: 1 / targets.length })),
  targets, access: 'public', timeoutMs: 1_000, maxBodyBytes: 1_000, idempotent: true,
}); // biome-ignore format: one record
const tableOf = (endpoints: Record<string, Route>): RoutingTable => ({
  lineage: 'l', revision: 1, schema: 1, confirmed: true, publishedAt: '', routers: 1, keys: {}, endpoints,
  servers: { a: { http: 'a:1', grpc: 'a:2' }, b: { http: 'b:1', grpc: 'b:2' } },
}); // biome-ignore format: one record

describe('a split among other endpoints', () => {
  const own = target('d1');
  const lent = target('d1', { endpoint: 'text/a', servers: ['a', 'b'] });
  const other = target('d2', { endpoint: 'text/b' });
  // the split's name sorts before its targets'
  const endpoints = { canary: route(lent, other), 'text/a': route(own) };
  const store = new DeploymentStore();
  const tables = new ServingTables(processing, store, silentLogger);
  const apply = (now: Record<string, Route>) =>
    tables.apply({ table: tableOf(now), held: false, heldDeployments: new Set() });
  const deployments = () => tables.current!.deployments;

  it('sends to the deployment as its own endpoint lists it, and counts there', async () => {
    await apply(endpoints);
    expect([...deployments().keys()].sort()).toEqual(['d1', 'd2']);
    expect(deployments().get('d1')!.target).toBe(own);
    expect(deployments().get('d1')!.stats.labels).toEqual({ endpoint: 'text/a', version: '1', arm: 'd1' });
    expect(deployments().get('d2')!.stats.labels).toEqual({ endpoint: 'text/b', version: '1', arm: 'd2' });
  });
  it('keeps what is known of a deployment from table to table', async () => {
    const before = deployments().get('d1');
    await apply(endpoints);
    expect(deployments().get('d1')).toBe(before);
    await apply({ canary: endpoints.canary });
    expect(deployments().get('d1')!.target).toBe(lent);
    expect(deployments().get('d1')!.stats).toBe(before!.stats);
  });
});
