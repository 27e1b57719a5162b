import type { GarbageRule } from '@perch/platform/database';

/** What callers needed for a while: events to follow, answers kept for requests that are sent again. */
export const accessGarbage: readonly GarbageRule[] = [
  {
    kind: 'events',
    what: 'events that followers had time to read',
    table: 'outbox o',
    where: 'o.at < $1',
    name: `o.type || ' ' || o.subject`,
  },
  {
    kind: 'kept answers',
    what: 'answers kept for requests sent twice, past their time',
    table: 'idempotency_keys i',
    where: 'i.expires_at < least($1, now())',
    name: 'i.key',
  },
];
