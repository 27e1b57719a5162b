import type { FeedbackReading } from '@perch/contracts';
import { type BucketSet, joinBuckets } from '../statistics/buckets.decide.ts';
import { sizeOf } from './bucket-set.decide.ts';
import type { EvidenceScope, MetricCounts, RolloutEvidence } from './evidence.entity.ts';
import {
  bucketReading,
  type CountedRow,
  type CountedSet,
  candidateBuckets,
  countedMetrics,
  distinctEvents,
  joinPairs,
  keylessOf,
  perMinute,
  requestCounts,
  requestsOf,
  setLookup,
} from './merge.plan.ts';

/** A metric whose counts do not come from routers' reports, with the candidate's events that were told apart. */
export interface OtherMetric {
  counts: MetricCounts;
  /** Under a sticky key: the candidate's buckets with the event. */
  candidates: BucketSet | null;
  hold: string | null;
}

export interface EvidenceSight {
  rows: CountedRow[];
  sets: CountedSet[];
  /** The database's clock, and when rows last changed. */
  now: Date;
  at: Date | null;
  /** Of the endpoint, all versions, since the last look at its traffic; null: there was none. */
  recent: { requests: number; spanMs: number } | null;
  feedback: (OtherMetric & { reading: FeedbackReading })[];
  provided: OtherMetric[];
}

/** A shorter time says more about chance than about traffic. */
const leastSpanMs = 10_000;

/** What decisions look at, from all that is stored. */
export function readEvidence(scope: EvidenceScope, sight: EvidenceSight): RolloutEvidence {
  const { rows, sets, now, at, recent, feedback, provided } = sight;
  const { policy, epochs, stickyHeader } = scope;
  const names = countedMetrics(policy, scope.baseline?.slowMs);
  const current = epochs.at(-1);
  const currentRows = rows.filter(({ epoch }) => epoch === current?.epoch);
  const requests = requestsOf(currentRows);
  const sinceMs = current ? now.getTime() - current.since.getTime() : 0;
  const others = [...feedback, ...provided];
  const shared = {
    pairs: joinPairs(rows),
    fallbacks: rows.reduce((sum, { counts }) => sum + counts.fallbacks, 0),
    keyless: keylessOf(rows),
    requests,
    requestsPerMinuteNow:
      recent && recent.spanMs >= leastSpanMs
        ? perMinute(recent.requests, recent.spanMs)
        : perMinute(requests.stable + requests.candidate + keylessOf(currentRows), sinceMs),
    sinceEvidenceMs: at && Math.max(0, now.getTime() - at.getTime()),
    feedback: feedback.map(({ reading }) => reading),
    holds: others.flatMap(({ hold }) => hold ?? []),
  };
  const otherMetrics = others.map(({ counts }) => counts);
  if (stickyHeader === null) {
    const metrics = [...names.map((metric) => requestCounts(rows, epochs, metric)), ...otherMetrics];
    // what came back later cannot be told apart from what was seen at once: the larger of both is certain
    const later = otherMetrics.map(({ epochs: counts }) => counts.reduce((sum, one) => sum + one.candidateEvents, 0));
    return {
      unit: 'request',
      metrics,
      candidateEvents: Math.max(distinctEvents(rows, names), ...later),
      ...shared,
    };
  }
  const lookups = names.map((metric) => ({ metric, setsOf: setLookup(sets, metric) }));
  const candidates = joinBuckets([
    ...lookups.map(({ setsOf }) => candidateBuckets(epochs, setsOf)),
    ...others.flatMap((other) => other.candidates ?? []),
  ]);
  return {
    unit: 'bucket',
    metrics: [...lookups.map(({ metric, setsOf }) => bucketReading(metric, epochs, setsOf)), ...otherMetrics],
    candidateEvents: sizeOf(candidates),
    ...shared,
  };
}
