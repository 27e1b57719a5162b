import type { GarbageRule } from '@perch/platform/database';

/** Servers and routers are not given up sooner, whatever is asked for: machines come back after a weekend. */
const comesBack = `least($1, now() - interval '7 days')`;
/** Time runs only while somebody watches, so that a restored dump damns nobody. */
const silentSince = (alias: string) => `greatest(${alias}.last_seen_at, (select watching_since from installation))`;

export const fleetGarbage: readonly GarbageRule[] = [
  {
    kind: 'servers',
    what: 'servers lost for more than a week that hold nothing; one that comes back enrols again',
    table: 'servers s',
    where: `s.presence = 'lost' and ${silentSince('s')} < ${comesBack} and s.mode is null
      and not exists (select 1 from placements p where p.server_id = s.id)`,
    name: `s.pool || '/' || s.name`,
  },
  {
    kind: 'routers',
    what: 'routers forgotten, or silent for more than a week',
    table: 'routers r',
    where: `(r.forgotten_at < $1 or ${silentSince('r')} < ${comesBack})`,
    name: 'r.name',
  },
  {
    kind: 'documents',
    what: 'documents of servers that are gone',
    table: 'documents d',
    where: `d.published_at < $1 and d.id like 'server/%' and not exists (select 1 from servers s where 'server/' || s.id = d.id)`,
    name: 'd.id',
  },
];
