import type { RouteTarget, RoutingTable } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { DeploymentStore } from './deployment.store.ts';
import type { ProcessingStore } from './processing.store.ts';

const processing = { find: () => ({}) } as unknown as ProcessingStore;
const servers = { a: { http: 'a:1', grpc: 'a:2' }, b: { http: 'b:1', grpc: 'b:2' } };
const target = (...on: string[]): RouteTarget => ({
  deployment: 'd', version: 1, tritonModel: 'm', servers: on, maxBatchSize: 0, inputs: [], outputs: [],
  processing: { builtin: 'passthrough', options: {} }, files: [],
}); // biome-ignore format: one record

describe('requests in hand when tables change', () => {
  const store = new DeploymentStore();
  const table = { servers } as unknown as RoutingTable;
  const take = (...on: string[]) => {
    const deployment = store.ensure('e', target(...on), table, processing)!;
    const now = new Map([['d', deployment]]);
    return { deployment, now };
  };

  it('are told for each server that the table no longer lists, until they are done', () => {
    const first = take('a', 'b');
    first.deployment.gauge.inFlight = 2;
    const second = take('a');
    second.deployment.gauge.inFlight = 5;
    store.forgetUnused(second.now);
    expect(store.unlisted(second.now)).toEqual({ 'd b': 2 });
    expect(store.inFlightBeside(second.now, new Set())).toEqual({});
    const third = take('b');
    store.forgetUnused(third.now);
    expect(store.unlisted(third.now)).toEqual({ 'd a': 7 });
    expect(store.inFlightBeside(new Map(), new Set())).toEqual({ d: 7 });
    first.deployment.gauge.inFlight = 0;
    second.deployment.gauge.inFlight = 0;
    store.forgetUnused(third.now);
    expect(store.unlisted(third.now)).toEqual({});
    expect(store.inFlightBeside(new Map(), new Set(['d']))).toEqual({ d: 1 });
  });

  it('a server that is listed again is waited for no longer', () => {
    const back = take('a', 'b');
    back.deployment.gauge.inFlight = 1;
    expect(store.unlisted(back.now)).toEqual({});
  });
});
