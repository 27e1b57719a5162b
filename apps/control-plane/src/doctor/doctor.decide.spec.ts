import type { ApiKey, Finding } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { type BasicFacts, diagnoseBasics } from './doctor.decide.ts';

const now = Date.parse('2026-01-01T00:00:00Z');
const key: ApiKey = {
  id: 'pk_1',
  name: 'ci',
  role: 'publisher',
  projects: [],
  endpoints: [],
  createdAt: '2025-01-01T00:00:00Z',
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: '2025-12-31T00:00:00Z',
};
const database = {
  serverVersion: 150_004,
  missingMigrations: [],
  unknownMigrations: [],
  clockSkewMs: 12,
  failingWork: [],
};
const store = { readsBack: true, conditionalWrites: true, checksums: true, signedUrlFault: null, tookMs: 30 };
const well: BasicFacts = {
  now,
  database: { value: database },
  store: { value: store },
  confirmed: { value: true },
  keys: { value: [key] },
  listensToOthers: true,
};
const faultsOf = (change: Partial<BasicFacts>): Finding[] =>
  diagnoseBasics({ ...well, ...change }).filter(({ severity }) => severity !== 'ok');
const withDatabase = (change: Partial<typeof database>) => ({ database: { value: { ...database, ...change } } });
const withStore = (change: Partial<typeof store>) => ({ store: { value: { ...store, ...change } } });
const inDays = (days: number) => new Date(now + days * 86_400_000).toISOString();

describe('what the doctor says of database, store, history and keys', () => {
  it('has one line for each where all is well', () => {
    expect(faultsOf({})).toEqual([]);
    expect(diagnoseBasics(well).map(({ what }) => what)).toEqual([
      'database',
      'clock',
      'store',
      'installation',
      'keys',
    ]);
  });
  it.each<[string, Partial<BasicFacts>, Finding['severity'], RegExp, RegExp]>([
    ['no database', { database: { fault: 'refused' } }, 'error', /refused/, /PERCH_DATABASE_URL/],
    ['an old Postgres', withDatabase({ serverVersion: 140_009 }), 'error', /PostgreSQL 14\.9/, /15 or later/],
    ['a schema that is behind', withDatabase({ missingMigrations: ['AddX1'] as never }), 'error', /lacks AddX1/, /perch migrate/],
    ['a schema that is ahead', withDatabase({ unknownMigrations: ['AddY2'] as never }), 'warning', /AddY2 of a newer/, /that release/],
    ['a clock behind', withDatabase({ clockSkewMs: 5_000 }), 'warning', /5 s behind/, /NTP/],
    ['a clock far ahead', withDatabase({ clockSkewMs: -60_000 }), 'error', /60 s ahead/, /NTP/],
    [
      'work that keeps failing',
      withDatabase({ failingWork: [{ kind: 'endpoint', key: 'a', attempts: 9, lastError: 'boom' }] as never }),
      'warning',
      /a failed 9 times in a row: boom/,
      /log/,
    ],
    ['no store', { store: { fault: 'no answer' } }, 'error', /no answer/, /PERCH_STORE_URL/],
    ['a store that loses bytes', withStore({ readsBack: false }), 'error', /come back/, /another store/],
    ['a store without conditions', withStore({ conditionalWrites: false }), 'error', /If-None-Match/, /honours/],
    ['a store without checksums', withStore({ checksums: false }), 'error', /wrong SHA-256/, /checksum/],
    ['URLs that lead nowhere', withStore({ signedUrlFault: 'no answer' as never }), 'error', /signed URL/, /PERCH_PUBLIC_URL/],
    ['a restored database', { confirmed: { value: false } }, 'error', /back in time/, /perch fleet confirm/],
    ['a key near its end', { keys: { value: [{ ...key, expiresAt: inDays(3) }] } }, 'warning', /ci .* runs out in 3 d/, /perch key create/],
    ['a key that ran out in use', { keys: { value: [{ ...key, expiresAt: inDays(-1) }] } }, 'warning', /ran out 24 h ago/, /hand it/],
    [
      'the key of the settings in daily use',
      { keys: { value: [{ ...key, id: 'pk_bootstrap' }] } },
      'warning',
      /PERCH_BOOTSTRAP_ADMIN_KEY/,
      /revoke pk_bootstrap/,
    ],
  ])('%s', (_what, change, severity, message, todo) => {
    const faults = faultsOf(change);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatchObject({ severity });
    expect(faults[0]!.message).toMatch(message);
    expect(faults[0]!.whatToDo).toMatch(todo);
  }); // biome-ignore format: rows
  it.each<[string, Partial<ApiKey>[], boolean]>([
    ['a key that lives on for long', [{ expiresAt: inDays(30) }], true],
    ['a revoked key near its end', [{ expiresAt: inDays(1), revokedAt: inDays(-1) }], true],
    ['a key that ran out and was not used', [{ expiresAt: inDays(-1), lastUsedAt: null }], true],
    ['the key of the settings, not used', [{ id: 'pk_bootstrap', lastUsedAt: inDays(-30) }], true],
    ['the key of the settings, reached from this machine alone', [{ id: 'pk_bootstrap' }], false],
  ])('says nothing of %s', (_what, keys, listensToOthers) => {
    expect(faultsOf({ listensToOthers, keys: { value: keys.map((one) => ({ ...key, ...one })) } })).toEqual([]);
  });
});
