import type { GarbageRule } from '@perch/platform/database';

/** What went on is asked about long after; the last rollout of an endpoint also says what the rule need not try again. */
export const promotionGarbage: readonly GarbageRule[] = [
  {
    kind: 'rollouts',
    what: 'rollouts that ended a month earlier and were followed by others, with their events and counts',
    table: 'rollouts r',
    where: `r.ended_at < $1::timestamptz - interval '30 days'
      and exists (select 1 from rollouts n where n.endpoint = r.endpoint and n.started_at > r.started_at)`,
    name: `r.endpoint || ' version ' || (r.candidate ->> 'version')`,
  },
];
