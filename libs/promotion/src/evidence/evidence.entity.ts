import type { FeedbackReading, MetricInput, PairEvidence } from '@perch/contracts';
import type { Baseline, RolloutRecord } from '../rollout.entity.ts';

/** What `EvidenceService.read` wants to know of a rollout; a `RolloutRecord` has it all. Counts of epochs that are not named do not count. */
export type EvidenceScope = Pick<RolloutRecord, 'id' | 'endpoint' | 'epochs' | 'policy' | 'stickyHeader' | 'baseline'>;

/** n judged, x of them with the event: requests, or buckets under a sticky key. */
export interface Tally {
  n: number;
  x: number;
}
export interface ArmTally {
  stable: Tally;
  candidate: Tally;
}

/** One metric, ready to become a `MetricInput`: what is missing is r0 (of the baseline) and the margin (of the policy). */
export interface MetricCounts extends Omit<MetricInput, 'r0' | 'margin'> {
  /** Closed cohorts of all epochs: what the bake compares with. */
  whole: ArmTally;
}

/** All that routers, feedback and providers said of one rollout, merged. */
export interface RolloutEvidence {
  unit: 'request' | 'bucket';
  /** Of the policy, in its order: error, slow, contract, flags, provided. */
  metrics: MetricCounts[];
  /** Distinct candidate requests (buckets) with an event of any metric. */
  candidateEvents: number;
  /** Null: nothing was shadowed. */
  pairs: PairEvidence | null;
  fallbacks: number;
  /** Requests without the sticky key. */
  keyless: number;
  /** Requests of the current epoch that ended, both arms. */
  requests: { stable: number; candidate: number };
  /** All arms, keyless ones too: since the minute began that is noted next, else over the current epoch. */
  requestsPerMinuteNow: number;
  /** Since counts last changed; null: there are none yet. */
  sinceEvidenceMs: number | null;
  feedback: FeedbackReading[];
  /** Sentences: why nothing may advance, whatever the bounds say. For `DecisionInput.holds`. */
  holds: string[];
}

/** The baseline, with where it comes from. */
export interface MeasuredBaseline extends Baseline {
  /** Errors of stable over the day before; null: too few requests to say. */
  errorRate: number | null;
  /** Requests of stable over the day before. */
  requests: number;
  /** What was found, for the first event of the rollout. */
  sentences: string[];
}

export interface BaselineWish {
  endpoint: string;
  /** Version number of stable. */
  version: number;
  policy: RolloutRecord['policy'];
  /** The endpoint's `slo.latencyMs`. */
  sloLatencyMs?: number | undefined;
}
