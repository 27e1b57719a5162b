import type { Finding, ObservedServer, Router, Server } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { diagnoseFleet, type EndpointFacts, type FleetFacts } from './doctor-fleet.decide.ts';

const now = Date.parse('2026-01-01T00:00:00Z');
const observed: ObservedServer = {
  lineage: 'l',
  revision: 5,
  heldRemovals: [],
  triton: { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 0 },
  models: { 'a-v1-0123': { state: 'ready', reason: null, since: '' } },
  disk: { freeBytes: 50e9, cacheBytes: 0 },
  facts: {
    host: 'h',
    supervised: true,
    backends: ['onnxruntime', 'python'],
    tensorrt: '10.3',
    onnxruntime: '1.20',
    gpus: [],
    ramBytes: null,
  },
};
const server: Server = {
  id: 's1',
  name: 'a',
  pool: 'default',
  http: '127.0.0.1:8000',
  grpc: '127.0.0.1:8001',
  labels: {},
  live: true,
  lastSeenAt: '2025-12-31T23:59:58Z',
  desiredRevision: 5,
  observed,
  drain: null,
};
const router: Router = {
  id: 'r1',
  name: 'r',
  live: true,
  lastSeenAt: '2025-12-31T23:59:00Z',
  lineage: 'l',
  revision: 7,
  held: false,
  inFlight: {},
  problems: {},
};
const endpoint: EndpointFacts = {
  name: 'text/a',
  pool: 'default',
  stopped: false,
  status: {
    phase: 'ready',
    reason: 'serving',
    message: 'version 1 serves',
    generationSeen: 1,
    servingVersions: [1],
    nextVersion: null,
  },
};
const well: FleetFacts = {
  now,
  servers: { value: [server] },
  routers: { value: [router] },
  endpoints: { value: [endpoint] },
  table: { revision: 7, ageMs: 3_600_000 },
  documents: new Map([['s1', { revision: 5, ageMs: 3_600_000 }]]),
  lineage: 'l',
};
const faultsOf = (change: Partial<FleetFacts>): Finding[] =>
  diagnoseFleet({ ...well, ...change }).filter(({ severity }) => severity !== 'ok');
const seen = (change: Partial<ObservedServer>, more: Partial<Server> = {}): Partial<FleetFacts> => ({
  servers: { value: [{ ...server, ...more, observed: { ...observed, ...change } }] },
});
const model = (state: 'failed' | 'stuck', reason: string) => seen({ models: { m: { state, reason, since: '' } } });
const blocked = (reason: string, servingVersions: number[]): EndpointFacts => ({
  ...endpoint,
  status: { ...endpoint.status, phase: 'blocked', reason, message: `it is ${reason}`, servingVersions },
});
const supervision = (change: object) => ({
  supervision: {
    state: 'backing_off' as const,
    restarts: 1,
    lastExit: 'killed for memory',
    console: ['x', 'last words'],
    ...change,
  },
});

describe('what the doctor says of servers, pools, routers and endpoints', () => {
  it('tells what each server is where all is well', () => {
    expect(faultsOf({})).toEqual([]);
    expect(diagnoseFleet(well)[0]!.message).toBe(
      'triton 2.51.0; 1 models; back-ends onnxruntime, python; TensorRT 10.3; 50.0 GB of disk free',
    );
  });
  it.each<[string, Partial<FleetFacts>, Finding['severity'], RegExp, RegExp]>([
    ['no server', { servers: { value: [] }, endpoints: { value: [] } }, 'error', /none has joined/, /perch key join --server/],
    ['servers that cannot be asked', { servers: { fault: 'slow' } }, 'error', /slow/, /log/],
    ['a silent server', { servers: { value: [server, { ...server, live: false }] } }, 'error', /silent for 2 s/, /perch gc/],
    ['one without a report', { servers: { value: [{ ...server, observed: null }] } }, 'warning', /not reported/, /agent/],
    ['a dead Triton', seen({ triton: { ...observed.triton, live: false } }), 'error', /does not answer at 127/, /start it/],
    [
      'a dead Triton under supervision',
      seen({ triton: { ...observed.triton, live: false }, ...supervision({}) }),
      'error',
      /killed for memory.*console ended: x \| last words/,
      /starts it again/,
    ],
    ['one that ends again and again', seen(supervision({ restarts: 4 })), 'warning', /again 4 times/, /memory/],
    ['an agent that does not follow', seen({ revision: 4 }), 'error', /follows revision 4, and revision 5/, /agent/],
    ['held removals', seen({ heldRemovals: ['m'] }), 'warning', /keeps 1 models/, /fleet confirm/],
    ['a failed model', model('failed', 'bad graph'), 'error', /m failed: bad graph/, /upload it again/],
    ['a stuck model', model('stuck', 'no end'), 'error', /m stuck: no end/, /restart/],
    ['a model held back', model('failed', 'crashes its server'), 'error', /crashes/, /held back/],
    ['little disk', seen({ disk: { freeBytes: 1e9, cacheBytes: 5e8 } }), 'warning', /1\.0 GB of disk free \(500 MB/, /make room/],
    ['no disk', seen({ disk: { freeBytes: 1e8, cacheBytes: 0 } }), 'error', /100 MB of disk/, /make room/],
    [
      'a pool of two versions of Triton',
      { servers: { value: [server, { ...server, id: 's2', name: 'b', observed: { ...observed, triton: { ...observed.triton, version: '2.40.0' } } }] } },
      'warning',
      /Triton 2\.40\.0 and 2\.51\.0/,
      /fleet roll/,
    ],
    ['a pool without servers', { endpoints: { value: [{ ...endpoint, pool: 'gpu' }] } }, 'error', /text\/a want it/, /--pool gpu/],
    ['no router', { routers: { value: [] } }, 'error', /none is live/, /perch key join --router/],
    ['a silent router', { routers: { value: [router, { ...router, live: false }] } }, 'warning', /silent for 60 s/, /forget-router r1/],
    ['a router with a problem', { routers: { value: [{ ...router, problems: { d: 'tokenizer.json' } }] } }, 'error', /tokenizer/, /mend it/],
    ['a router that holds back', { routers: { value: [{ ...router, held: true, revision: 3 }] } }, 'warning', /unconfirmed/, /fleet confirm/],
    ['a router that is behind', { routers: { value: [{ ...router, revision: 6 }] } }, 'error', /revision 6, and revision 7/, /log/],
    ['an endpoint that serves nothing', { endpoints: { value: [blocked('no_server', [])] } }, 'error', /no_server/, /endpoint why text\/a/],
    ['an endpoint that serves an older version', { endpoints: { value: [blocked('deployment_failed', [1])] } }, 'warning', /deployment_failed/, /why/],
    ['an endpoint that waits for a version', { endpoints: { value: [blocked('no_version', [])] } }, 'warning', /no_version/, /why/],
  ])('%s', (_what, change, severity, message, todo) => {
    const faults = faultsOf(change);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatchObject({ severity });
    expect(faults[0]!.message).toMatch(message);
    expect(faults[0]!.whatToDo).toMatch(todo);
  }); // biome-ignore format: rows
  it('leaves out what is not out of step for long, what is drained on purpose, and what is stopped', () => {
    const young = { revision: 9, ageMs: 2_000 };
    expect(faultsOf({ table: young, documents: new Map([['s1', young]]) })).toEqual([]);
    expect(faultsOf({ endpoints: { value: [{ ...blocked('stopped', []), stopped: true, pool: 'gone' }] } })).toEqual(
      [],
    );
    const drain = { since: 'noon', by: 'olga', reason: 'disk', drained: true, waitsFor: [] };
    const drained = faultsOf({ servers: { value: [server, { ...server, id: 's2', drain }] } });
    expect(drained.map(({ severity, message }) => `${severity} ${message}`)).toEqual([
      'warning drained since noon by olga (disk)',
    ]);
  });
  it('names the first twenty blocked endpoints and how many more there are', () => {
    const many = Array.from({ length: 25 }, () => blocked('no_server', []));
    expect(faultsOf({ endpoints: { value: many } }).at(-1)!.message).toBe('5 more are blocked');
  });
});
