import type {
  Decision,
  DecisionInput,
  Margin,
  PairEvidence,
  RolloutArm,
  RolloutPolicy,
  RolloutRun,
  RolloutState,
} from '@perch/contracts';

/** A stretch of time with one weight of the candidate. */
export interface Epoch {
  epoch: number;
  /** 0 … 0.99; 0 also while only pairs are compared. */
  share: number;
  since: Date;
  /** By metric: the gap in the decision that chose this weight. Absent: nothing was proved, or a person chose it. */
  gaps?: Record<string, number>;
}

/** What stable was like before: frozen when the rollout starts, so that no decision moves with it. */
export interface Baseline {
  /** By metric: how much worse than stable still counts as equal. */
  r0: Record<string, number>;
  /** Latency above which a reply is slow; null: nobody is judged by it. */
  slowMs: number | null;
  /** The busiest minute of the last day, all arms. */
  requestsPerMinute: number;
  /** Of all metrics for which the policy names none, where it leaves that to the measured rate. */
  autoMargin?: Margin;
}

/**
 * How it ended: `verdict` (evidence or a hard guard; the digest is quarantined), `person`, `policy` (`onMaxWait: abort`),
 * `timeout` (`verifyMs`), `endpoint` (removed, stopped, another mode, or the rule wants something else).
 */
export type RolloutEnd = 'promoted' | 'verdict' | 'person' | 'policy' | 'timeout' | 'endpoint';

/** One rollout, all of it. */
export interface RolloutRecord {
  id: string;
  endpoint: string;
  /** Goes up with every write; a write wants the one it read. */
  rowVersion: number;
  state: RolloutState;
  run: RolloutRun;
  heldBy: string | null;
  reason: string;
  stable: RolloutArm;
  /** `deployment` is '' until there is one. */
  candidate: RolloutArm;
  policy: RolloutPolicy;
  /** Header of the sticky key; null: requests are drawn one by one. */
  stickyHeader: string | null;
  salt: string;
  epoch: number;
  share: number;
  /** Those of the candidate on trial now, oldest first; the last one is `epoch`. Empty before it had any traffic. */
  epochs: Epoch[];
  baseline: Baseline | null;
  /** A person chose the version. */
  byHand: boolean;
  allowBreaking: boolean;
  /** Digest of what the rule wanted when this candidate was taken. */
  wishSeen: string | null;
  restarts: number;
  queued: { version: number; digest: string } | null;
  /** The last look at the evidence; kept apart from events, which hold the decisive ones. */
  decision: Decision | null;
  decidedAt: Date | null;
  pairs: PairEvidence | null;
  fallbacks: number;
  startedAt: Date;
  startedBy: string;
  stepAt: Date;
  verifyingSince: Date;
  /** `maxWaitMs` counts from here: the last step, or when a person resumed. */
  patienceSince: Date;
  endedAt: Date | null;
  endedAs: RolloutEnd | null;
  /** Of a promoted one: until then the old version stays loaded and a person may go back to it. */
  keepUntil: Date | null;
}

export interface NewRolloutEvent {
  type: string;
  actor: string;
  message: string;
  decision: Decision | null;
  input: DecisionInput | null;
}
