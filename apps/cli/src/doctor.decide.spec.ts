import { AppError, type Finding } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { diagnose, type Facts } from './doctor.decide.ts';

const found: Finding = { severity: 'ok', what: 'database', message: 'PostgreSQL 15.4', whatToDo: null };
const well: Facts = {
  context: 'local',
  url: 'http://c',
  routerUrl: 'http://r',
  controlPlane: { ready: true, checks: { database: { up: true } }, skewMs: 200 },
  router: { ready: true, checks: {} },
  whoami: { id: 'k', name: 'me', role: 'admin', projects: [], endpoints: [] },
  diagnosis: { healthy: true, version: '0.1.0', now: '2026-01-01T00:00:00Z', findings: [found] },
};

describe('doctor', () => {
  it('finds nothing where all is well, and hands on what the control plane says', () => {
    expect(diagnose(well).every(({ severity }) => severity === 'ok')).toBe(true);
    expect(diagnose(well)).toContainEqual(found);
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
    ['a key that sees too little', { diagnosis: new AppError('forbidden', 'no') }, /does not see/, /role operator/],
    ['an older control plane', { diagnosis: new AppError('not_found', 'no route') }, /older release/, /release/],
    ['a control plane that fails', { diagnosis: new AppError('internal', 'internal error') }, /internal/, /log/],
    ['no router address', { router: undefined, routerUrl: undefined }, /names no router/, /perch login --router/],
    [
      'a router that does not answer',
      { router: new AppError('unavailable', 'cannot reach http://r') },
      /cannot reach/,
      /right\?/,
    ],
  ])('%s: says it and what to do', (_what, change, message, todo) => {
    const faults = diagnose({ ...well, ...change }).filter(({ severity }) => severity !== 'ok');
    expect(faults.length).toBeGreaterThan(0);
    expect(faults.some((one) => message.test(one.message) && todo.test(one.whatToDo ?? ''))).toBe(true);
  });
  it('says a bad key once, not again for all that it may not see', () => {
    const no = new AppError('unauthenticated', 'this key is unknown');
    const faults = diagnose({ ...well, whoami: no, diagnosis: no }).filter(({ severity }) => severity !== 'ok');
    expect(faults.map(({ what }) => what)).toEqual(['key']);
  });
});
