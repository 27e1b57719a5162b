import type { EpochCounts, PairEvidence, RolloutPolicy } from '@perch/contracts';
import type { Epoch } from '../rollout.entity.ts';
import {
  type ArmBuckets,
  type BucketSet,
  bucketCounts,
  emptyBuckets,
  joinBuckets,
} from '../statistics/buckets.decide.ts';
import { sideOf, sizeOf } from './bucket-set.decide.ts';
import type { ArmTally, MetricCounts, Tally } from './evidence.entity.ts';
import type { Count, SetRow, WorkerCounts } from './report.decide.ts';

/** What one worker of one boot of one router counted in one epoch. */
export interface CountedRow {
  epoch: number;
  counts: WorkerCounts;
}
export type CountedSet = Omit<SetRow, 'rollout'>;

const arms = ['stable', 'candidate'] as const;
type Arm = (typeof arms)[number];
type Phase = 'ended' | 'closed';

/** Metrics that routers count themselves, in the order of the policy. `slow` needs a latency to be judged by. */
export function countedMetrics(policy: RolloutPolicy, slowMs: number | null | undefined): string[] {
  const guards = (['error', 'slow', 'contract'] as const).filter((name) => policy[name] !== false);
  const flags = policy.flags.filter(({ feedbackWithinMs }) => feedbackWithinMs === undefined);
  return [...guards.filter((name) => name !== 'slow' || slowMs !== null), ...flags.map(({ name }) => name)];
}

const none: Tally = { n: 0, x: 0 };
const add = (one: Tally, other: Count | undefined): Tally => (other ? { n: one.n + other.n, x: one.x + other.x } : one);

const sumOf = (rows: readonly CountedRow[], arm: Arm, phase: Phase, metric: string): Tally =>
  rows.reduce((sum, { counts }) => add(sum, counts[arm][phase][metric]), none);

type RollbackCounts = Pick<EpochCounts, 'stableEvents' | 'candidateEvents' | 'stableOpen'>;

/**
 * Events as the rollback rule takes them. Which requests count is told by when they arrived alone, and those on their way
 * are taken for what speaks least against the candidate: events of stable, none of its own. So E is never above what it will
 * be once they ended, however late either arm fails and however many workers count. Of a worker that does not tell who is
 * on the way only whole cohorts count.
 */
function rollbackCounts(rows: readonly CountedRow[], metric: string): RollbackCounts {
  const sum = { stableEvents: 0, candidateEvents: 0, stableOpen: 0 };
  for (const { counts } of rows) {
    const { open } = counts.stable;
    const phase = open === undefined ? 'closed' : 'ended';
    sum.stableEvents += (counts.stable[phase][metric]?.x ?? 0) + (open ?? 0);
    sum.candidateEvents += counts.candidate[phase][metric]?.x ?? 0;
    sum.stableOpen += open ?? 0;
  }
  const { stableOpen, ...events } = sum;
  return stableOpen > 0 ? sum : events;
}

/** Requests: each is a unit of its own. */
export function requestCounts(rows: readonly CountedRow[], epochs: readonly Epoch[], metric: string): MetricCounts {
  const current = epochs.at(-1)?.epoch;
  const ofEpoch = (wanted: number | undefined) => rows.filter(({ epoch }) => epoch === wanted);
  const known = rows.filter(({ epoch }) => epochs.some((one) => one.epoch === epoch));
  const closed = (of: readonly CountedRow[]): ArmTally => ({
    stable: sumOf(of, 'stable', 'closed', metric),
    candidate: sumOf(of, 'candidate', 'closed', metric),
  });
  return {
    metric,
    // while only pairs are compared the candidate has no share: nothing is told by who failed
    epochs: epochs
      .filter(({ share }) => share > 0)
      .map(({ epoch, share }) => ({ epoch, share, ...rollbackCounts(ofEpoch(epoch), metric) })),
    ...closed(ofEpoch(current)),
    whole: closed(known),
  };
}

/** Sets of one metric: who was judged (`seen`), and who had the event (`hit`), by epoch, arm and phase. */
export type SetLookup = (epoch: number, arm: Arm, phase: Phase) => ArmBuckets;

/** Units are buckets (see `bucketCounts`): who was judged of an arm is told by the buckets that it owns. */
export function bucketReading(metric: string, epochs: readonly Epoch[], setsOf: SetLookup): MetricCounts {
  const joined = (of: readonly Epoch[], arm: Arm, part: keyof ArmBuckets): number =>
    sizeOf(joinBuckets(of.map(({ epoch, share }) => sideOf(setsOf(epoch, arm, 'closed')[part], arm, share))));
  const tally = (of: readonly Epoch[], arm: Arm): Tally => ({ n: joined(of, arm, 'seen'), x: joined(of, arm, 'hit') });
  const both = (of: readonly Epoch[]): ArmTally => ({ stable: tally(of, 'stable'), candidate: tally(of, 'candidate') });
  const onTrial = epochs
    .filter(({ share }) => share > 0)
    .map(({ epoch, share }) => ({
      epoch,
      share,
      stable: setsOf(epoch, 'stable', 'closed'),
      candidate: setsOf(epoch, 'candidate', 'closed'),
    }));
  return { metric, epochs: bucketCounts(onTrial), ...both(epochs.slice(-1)), whole: both(epochs) };
}

/** The candidate's buckets with an event of a metric, over all epochs. */
export const candidateBuckets = (epochs: readonly Epoch[], setsOf: SetLookup): BucketSet =>
  joinBuckets(epochs.map(({ epoch, share }) => sideOf(setsOf(epoch, 'candidate', 'ended').hit, 'candidate', share)));

export function setLookup(sets: readonly CountedSet[], metric: string): SetLookup {
  const found = new Map(
    sets.filter((set) => set.metric === metric).map((set) => [`${set.epoch} ${set.arm} ${set.phase}`, set]),
  );
  return (epoch, arm, phase) => found.get(`${epoch} ${arm} ${phase}`) ?? { seen: emptyBuckets(), hit: emptyBuckets() };
}

/**
 * Distinct candidate requests with an event of any metric. A router that does not tell them apart is taken for its metric
 * with the most: one bad request must never pass for two.
 */
export const distinctEvents = (rows: readonly CountedRow[], metrics: readonly string[]): number =>
  rows.reduce((sum, { counts: { candidate } }) => {
    const most = Math.max(0, ...metrics.map((metric) => candidate.ended[metric]?.x ?? 0));
    return sum + (candidate.bad === undefined ? most : Math.max(most, candidate.bad));
  }, 0);

export function joinPairs(rows: readonly CountedRow[]): PairEvidence | null {
  const told = rows.flatMap(({ counts }) => (counts.pairs ? [counts.pairs] : []));
  if (told.length === 0) return null;
  const sum = (name: 'pairs' | 'agree' | 'compared' | 'dropped') => told.reduce((all, pairs) => all + pairs[name], 0);
  const discordant: PairEvidence['discordant'] = {};
  for (const pairs of told)
    for (const [metric, { stable, candidate }] of Object.entries(pairs.discordant)) {
      const before = discordant[metric] ?? { stable: 0, candidate: 0 };
      discordant[metric] = { stable: before.stable + stable, candidate: before.candidate + candidate };
    }
  return {
    pairs: sum('pairs'),
    agree: sum('agree'),
    compared: sum('compared'),
    discordant,
    dropped: sum('dropped'),
  };
}

/** Requests of an epoch that ended, by arm: every one of them is judged by `error`. */
export const requestsOf = (rows: readonly CountedRow[]): { stable: number; candidate: number } => ({
  stable: sumOf(rows, 'stable', 'ended', 'error').n,
  candidate: sumOf(rows, 'candidate', 'ended', 'error').n,
});

export const keylessOf = (rows: readonly CountedRow[]): number =>
  rows.reduce((sum, { counts }) => sum + counts.keyless, 0);

/** A rate of requests over a time that is hardly more than nothing says nothing: at least this long is divided by. */
const leastMs = 1_000;
export const perMinute = (requests: number, ms: number): number => (requests * 60_000) / Math.max(leastMs, ms);
