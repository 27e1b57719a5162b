import { AppError, type Server } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { diagnose, type Facts } from './doctor.decide.ts';

const now = Date.parse('2026-01-01T00:00:00Z');
const server: Server = {
  id: 's1',
  name: 'a',
  pool: 'default',
  http: '127.0.0.1:8000',
  grpc: '127.0.0.1:8001',
  labels: {},
  live: true,
  lastSeenAt: '2025-12-31T23:59:58Z',
  desiredRevision: 1,
  observed: {
    lineage: null,
    revision: 1,
    heldRemovals: [],
    triton: { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 0 },
    models: {},
    disk: { freeBytes: 50e9, cacheBytes: 0 },
  },
  drain: null,
};
const router = {
  id: 'r1',
  name: 'r',
  live: true,
  lastSeenAt: null,
  lineage: null,
  revision: 7,
  held: false,
  inFlight: {},
  problems: {},
};
const well: Facts = {
  context: 'local',
  url: 'http://c',
  routerUrl: 'http://r',
  controlPlane: { ready: true, checks: { database: { up: true } }, skewMs: 200 },
  router: { ready: true, checks: {} },
  whoami: { id: 'k', name: 'me', role: 'admin', projects: [], endpoints: [] },
  status: { version: '0.1.0', lineage: 'x', confirmed: true },
  servers: [server],
  routers: [router],
};
const observed = server.observed!;

describe('doctor', () => {
  it('finds nothing where all is well', () => {
    expect(diagnose(well, now).every(({ level }) => level === 'good')).toBe(true);
  });
  it.each<[string, Partial<Facts>, RegExp, RegExp]>([
    [
      'no control plane',
      { controlPlane: new AppError('unavailable', 'cannot reach http://c') },
      /cannot reach/,
      /perch up/,
    ],
    [
      'no database',
      { controlPlane: { ready: false, checks: { database: { up: false, reason: 'refused' } } } },
      /refused/,
      /PERCH_DATABASE_URL/,
    ],
    [
      'no store',
      { controlPlane: { ready: false, checks: { 'artifact store': { up: false, reason: '403' } } } },
      /403/,
      /PERCH_STORE_URL/,
    ],
    ['a clock ahead', { controlPlane: { ready: true, checks: {}, skewMs: 90_000 } }, /90 s ahead/, /NTP/],
    ['a clock behind', { controlPlane: { ready: true, checks: {}, skewMs: -90_000 } }, /90 s behind/, /NTP/],
    ['a bad key', { whoami: new AppError('unauthenticated', 'this key is unknown') }, /unknown/, /perch login/],
    [
      'a restored database',
      { status: { version: '1', lineage: 'x', confirmed: false } },
      /back in time/,
      /perch fleet confirm/,
    ],
    ['no server', { servers: [] }, /none has joined/, /perch key join --server/],
    ['a silent server', { servers: [{ ...server, live: false }] }, /silent; last heard of 2 s ago/, /agent/],
    [
      'a dead Triton',
      { servers: [{ ...server, observed: { ...observed, triton: { ...observed.triton, live: false } } }] },
      /does not answer/,
      /start Triton/,
    ],
    [
      'a failed model',
      {
        servers: [
          { ...server, observed: { ...observed, models: { m: { state: 'failed', reason: 'bad graph', since: '' } } } },
        ],
      },
      /m failed: bad graph/,
      /upload it again/,
    ],
    [
      'a full disk',
      { servers: [{ ...server, observed: { ...observed, disk: { freeBytes: 1e9, cacheBytes: 0 } } }] },
      /1\.0 GB of disk free/,
      /make room/,
    ],
    [
      'held removals',
      { servers: [{ ...server, observed: { ...observed, heldRemovals: ['m'] } }] },
      /keeps 1 models/,
      /fleet confirm/,
    ],
    ['no router', { routers: [] }, /none is live/, /perch key join --router/],
    ['a silent router', { routers: [router, { ...router, name: 'old', live: false }] }, /silent/, /forget-router r1/],
    [
      'a router with a problem',
      { routers: [{ ...router, problems: { d: 'tokenizer.json is broken' } }] },
      /tokenizer\.json/,
      /mend it/,
    ],
    ['no router address', { router: undefined, routerUrl: undefined }, /names no router/, /perch login --router/],
    [
      'a router that does not answer',
      { router: new AppError('unavailable', 'cannot reach http://r') },
      /cannot reach/,
      /right\?/,
    ],
  ])('%s: says it and what to do', (_what, change, finding, todo) => {
    const faults = diagnose({ ...well, ...change }, now).filter(({ level }) => level !== 'good');
    expect(faults.length).toBeGreaterThan(0);
    expect(faults.some((one) => finding.test(one.finding) && todo.test(one.todo ?? ''))).toBe(true);
  });
  it('does not complain about what the key may not see', () => {
    const hidden = new AppError('forbidden', 'wants operator');
    const facts = { ...well, servers: hidden, routers: hidden, status: hidden };
    expect(diagnose(facts, now).every(({ level }) => level === 'good')).toBe(true);
  });
});
