import { Injectable } from '@nestjs/common';
import type { FlagMetric } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { emptyBuckets } from '../statistics/buckets.decide.ts';
import { hexOf, setOf } from './bucket-set.decide.ts';
import { bitsOf, bytesOf, setOfBytes } from './count.store.ts';
import { cohortMs, delayedFlags, type FeedbackRollout, type TakenFeedback } from './feedback.decide.ts';
import { type ArmFeedback, bucketOf, type EpochFeedback } from './feedback.plan.ts';

const emptyHex = hexOf(emptyBuckets());

/** The only SQL for feedback, and for how many replies there were by when. */
@Injectable()
export class FeedbackStore {
  /** Keeps the first key that a rollout gets. */
  async keyFor(tx: Tx, rollout: string, fresh: Buffer): Promise<Buffer> {
    await tx.query('insert into feedback_keys (rollout_id, key) values ($1, $2) on conflict do nothing', [
      rollout,
      fresh,
    ]);
    const [row] = await tx.query('select key from feedback_keys where rollout_id = $1', [rollout]);
    return row.key;
  }

  async rollout(tx: Tx, id: string): Promise<(FeedbackRollout & { key: Buffer; nowMs: number }) | undefined> {
    const [row] = await tx.query(
      `select r.id, r.endpoint, r.state, r.ended_at is not null as over, r.sticky_header is not null as sticky,
         (select coalesce(array_agg((e ->> 'epoch')::integer), '{}') from jsonb_array_elements(r.epochs) e) as epochs,
         coalesce(r.policy -> 'flags', '[]') as flags, k.key, extract(epoch from now()) * 1000 as "nowMs"
       from rollouts r join feedback_keys k on k.rollout_id = r.id where r.id = $1`,
      [id],
    );
    return row && { ...row, nowMs: Number(row.nowMs) };
  }

  /** Counts it, unless this request's feedback on the flag was counted before; false: it was. */
  async count(tx: Tx, rollout: string, taken: TakenFeedback, raised: boolean): Promise<boolean> {
    const bucket = bucketOf(taken.bucket);
    const given = bucket === undefined ? emptyHex : hexOf(setOf([bucket]));
    const rows = await tx.query(
      `with fresh as (
         insert into feedback_given (rollout_id, request_id, flag, expires_at) values ($1, $2, $3, to_timestamp($4))
         on conflict do nothing returning 1)
       insert into feedback_counts as c (rollout_id, epoch, arm, flag, cohort, given, raised, given_buckets, raised_buckets)
       select $1, $5, $6, $3, to_timestamp($7), 1, $8::integer, ${bitsOf('$9::text')}, ${bitsOf('$10::text')} from fresh
       on conflict (rollout_id, epoch, arm, flag, cohort) do update set given = c.given + 1, raised = c.raised + excluded.raised,
         given_buckets = c.given_buckets | excluded.given_buckets, raised_buckets = c.raised_buckets | excluded.raised_buckets
       returning 1`,
      [
        rollout,
        taken.requestId,
        taken.flag,
        taken.expiresS,
        taken.epoch,
        taken.arm,
        taken.cohortS,
        raised ? 1 : 0,
        given,
        raised ? given : emptyHex,
      ],
    );
    return rows.length === 1;
  }

  /** Notes how many replies there are by now, where the last note is old enough; for epochs of rollouts with delayed flags. */
  async mark(tx: Tx, epochs: readonly { rollout: string; epoch: number; gapMs: number }[]): Promise<void> {
    const replies = (arm: string) =>
      `sum(coalesce((c.counts #>> '{${arm},ended,error,n}')::bigint - (c.counts #>> '{${arm},ended,error,x}')::bigint, 0))`;
    const seen = (arm: string) =>
      `coalesce((select b.seen from arm_buckets b where b.rollout_id = k.rollout and b.epoch = k.epoch and b.arm = '${arm}'
        and b.phase = 'ended' and b.metric = 'error'), 0::bit(10000))`;
    await tx.query(
      `insert into reply_marks (rollout_id, epoch, at, stable, candidate, stable_buckets, candidate_buckets)
       select k.rollout, k.epoch, now(), ${replies('stable')}, ${replies('candidate')}, ${seen('stable')}, ${seen('candidate')}
       from jsonb_to_recordset($1) as k(rollout uuid, epoch integer, "gapMs" bigint)
       join arm_counts c on c.rollout_id = k.rollout and c.epoch = k.epoch
       where not exists (select 1 from reply_marks m where m.rollout_id = k.rollout and m.epoch = k.epoch
         and m.at > now() - k."gapMs" * interval '1 millisecond')
       group by k.rollout, k.epoch on conflict do nothing`,
      [JSON.stringify(epochs)],
    );
  }

  /** By flag and epoch: replies that are older than the flag's window, and what was said of them. */
  async judged(tx: Tx, rollout: string, flags: readonly FlagMetric[]): Promise<EpochFeedback[]> {
    const wanted = delayedFlags(flags).map(({ name, feedbackWithinMs }) => ({
      flag: name,
      withinMs: feedbackWithinMs,
      cohortMs: cohortMs(feedbackWithinMs),
    }));
    if (wanted.length === 0) return [];
    const rows = await tx.query(
      `with m as (
         select distinct on (f.flag, r.epoch) f.flag, f."cohortMs", r.*
         from jsonb_to_recordset($2) as f(flag text, "withinMs" bigint, "cohortMs" bigint)
         join reply_marks r on r.rollout_id = $1 and r.at <= now() - f."withinMs" * interval '1 millisecond'
         order by f.flag, r.epoch, r.at desc)
       select m.flag, m.epoch, a.arm, case a.arm when 'stable' then m.stable else m.candidate end as replies,
         ${bytesOf(`case a.arm when 'stable' then m.stable_buckets else m.candidate_buckets end`)} as "repliesSet",
         coalesce(sum(c.given), 0) as given, coalesce(sum(c.raised), 0) as raised,
         ${bytesOf('coalesce(bit_or(c.given_buckets), 0::bit(10000))')} as "givenSet",
         ${bytesOf('coalesce(bit_or(c.raised_buckets), 0::bit(10000))')} as "raisedSet"
       from m cross join (values ('stable'), ('candidate')) as a(arm)
       left join feedback_counts c on c.rollout_id = $1 and c.flag = m.flag and c.epoch = m.epoch and c.arm = a.arm
         and c.cohort + m."cohortMs" * interval '1 millisecond' <= m.at
       group by m.flag, m.epoch, a.arm, m.stable, m.candidate, m.stable_buckets, m.candidate_buckets`,
      [rollout, JSON.stringify(wanted)],
    );
    const byEpoch = new Map<string, Partial<EpochFeedback>>();
    for (const row of rows) {
      const key = `${row.flag} ${row.epoch}`;
      byEpoch.set(key, { ...byEpoch.get(key), flag: row.flag, epoch: row.epoch, [row.arm]: toArm(row) });
    }
    return [...byEpoch.values()] as EpochFeedback[];
  }

  /** What no rule looks at any more: old dedupe rows, and marks that a newer one is old enough to replace. */
  async sweep(tx: Tx): Promise<void> {
    await tx.query('delete from feedback_given where expires_at < now()');
    await tx.query(
      `delete from reply_marks m using rollouts r where r.id = m.rollout_id and exists (
         select 1 from reply_marks n where n.rollout_id = m.rollout_id and n.epoch = m.epoch and n.at > m.at
           and n.at < now() - interval '1 millisecond' * (select max((f ->> 'feedbackWithinMs')::bigint)
             from jsonb_array_elements(r.policy -> 'flags') f))`,
    );
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a row of `judged`
const toArm = (row: any): ArmFeedback => ({
  replies: Number(row.replies),
  given: Number(row.given),
  raised: Number(row.raised),
  repliesSet: setOfBytes(row.repliesSet),
  givenSet: setOfBytes(row.givenSet),
  raisedSet: setOfBytes(row.raisedSet),
});
