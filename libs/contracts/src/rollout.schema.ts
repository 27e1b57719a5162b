import { z } from 'zod';
import { pairEvidence } from './evidence.schema.ts';
import { margin, policyReference, rolloutPolicy } from './rollout-policy.schema.ts';

export const rolloutStates = [
  'pending', 'verifying', 'shadowing', 'shifting', 'baking', 'promoted', 'rolled_back', 'aborted',
] as const; // biome-ignore format: one row reads better
export const rolloutState = z.enum(rolloutStates);
export type RolloutState = z.infer<typeof rolloutState>;
export const isOver = (state: RolloutState): boolean => ['promoted', 'rolled_back', 'aborted'].includes(state);

/** Beside the state: it goes on by itself, lacks evidence, or a person stopped it where it is. */
export const rolloutRun = z.enum(['running', 'waiting', 'held']);
export type RolloutRun = z.infer<typeof rolloutRun>;

export const verdicts = ['advance', 'hold', 'roll_back', 'insufficient'] as const;
export const verdict = z.enum(verdicts);
export type Verdict = z.infer<typeof verdict>;

/** One arm in what a decision looked at: counts of the current epoch and the bounds that hold for its rate. */
export const armReading = z.object({ n: z.number(), x: z.number(), lower: z.number(), upper: z.number() });
export type ArmReading = z.infer<typeof armReading>;

export const metricReading = z
  .object({
    metric: z.string(),
    stable: armReading,
    candidate: armReading,
    /** `upper` of the candidate − `lower` of stable. */
    gap: z.number(),
    margin: z.number(),
    /** E of this metric alone, and its part in the weighted mean. */
    e: z.number(),
    weight: z.number(),
  })
  .meta({ id: 'MetricReading' });
export type MetricReading = z.infer<typeof metricReading>;

/**
 * Counts of one metric in one epoch, as the rollback rule takes them: units are requests, or users under a sticky key
 * (then one epoch may have several entries of different shares). Where one arm fails fast and the other late, events that
 * merely have ended would speak against the fast one: so each of stable's requests that is still on its way counts as an event.
 */
export const epochCounts = z.object({
  epoch: z.number().int(),
  /** Candidate's share among the units counted here. */
  share: z.number(),
  stableEvents: z.number(),
  candidateEvents: z.number(),
  /** Of `stableEvents` those that are requests on their way. Left out: none. */
  stableOpen: z.number().optional(),
});
export type EpochCounts = z.infer<typeof epochCounts>;

export const metricInput = z.object({
  metric: z.string(),
  r0: z.number(),
  margin,
  /** All epochs, for the rollback rule. */
  epochs: z.array(epochCounts),
  /** The current epoch, closed cohorts: for promotion. */
  stable: z.object({ n: z.number(), x: z.number() }),
  candidate: z.object({ n: z.number(), x: z.number() }),
  /** All epochs, closed cohorts: a bake is held against `stable` of it. Left out: the current epoch alone. */
  whole: z
    .object({
      stable: z.object({ n: z.number(), x: z.number() }),
      candidate: z.object({ n: z.number(), x: z.number() }),
    })
    .optional(),
  /** The reading's `gap` in the decision that chose the current weight; left out: the weight was within the budget. */
  stepGap: z.number().optional(),
});
export type MetricInput = z.infer<typeof metricInput>;

const judgedReplies = z.object({ n: z.number(), x: z.number() });
/** How much comes back on a delayed flag in the current epoch: of n replies (users) old enough to be judged, x with feedback of any kind. */
export const feedbackReading = z.object({
  flag: z.string(),
  stable: judgedReplies,
  candidate: judgedReplies,
  /** One arm provably gets more of it: what comes back says nothing fair about the arms, and nothing advances. */
  differs: z.boolean(),
});
export type FeedbackReading = z.infer<typeof feedbackReading>;

/** All that a decision looked at: from it alone the decision can be computed again. */
export const decisionInput = z.object({
  policy: rolloutPolicy,
  /** What the metrics count: requests, or users (buckets). */
  unit: z.enum(['request', 'bucket']),
  share: z.number(),
  stage: z.enum(['shadowing', 'shifting', 'baking']),
  /** Since the weight or the stage last changed. */
  sinceStepMs: z.number(),
  /** Since then too, or since a person resumed it: what `maxWaitMs` is compared with while no step is allowed. */
  sinceEvidenceMs: z.number(),
  /** The busiest minute of the last day, all arms. */
  requestsPerMinute: z.number(),
  /** Of this epoch, all arms. */
  requestsPerMinuteNow: z.number(),
  /** Distinct candidate requests among the events. */
  candidateEvents: z.number(),
  metrics: z.array(metricInput),
  pairs: pairEvidence.nullable(),
  /** Reasons that forbid to advance or to promote, whatever the bounds say: a provider that fails, feedback that one arm gets more of. Absent: none. */
  holds: z.array(z.string()).optional(),
  /** Absent: no flag waits for feedback. */
  feedback: z.array(feedbackReading).optional(),
});
export type DecisionInput = z.infer<typeof decisionInput>;

export const decision = z
  .object({
    verdict,
    /** What is to be done: the share from now on (of the candidate), or the end. */
    share: z.number(),
    next: z.enum(['stay', 'shift', 'bake', 'promote', 'roll_back', 'hold', 'abort']),
    /** Sentences for a person, the decisive one first. */
    reasons: z.array(z.string()),
    e: z.number(),
    threshold: z.number(),
    readings: z.array(metricReading),
    /** When the next step is expected if nothing changes; null: cannot be said. */
    nextStepInMs: z.number().nullable(),
    /** Only in a rollout's last decision, for show; absent: no flag waits for feedback. */
    feedback: z.array(feedbackReading).optional(),
  })
  .meta({ id: 'Decision' });
export type Decision = z.infer<typeof decision>;

export const rolloutArm = z.object({ deployment: z.string(), version: z.number().int(), digest: z.string() });
export type RolloutArm = z.infer<typeof rolloutArm>;

export const rollout = z
  .object({
    id: z.string(),
    endpoint: z.string(),
    state: rolloutState,
    run: rolloutRun,
    heldBy: z.string().nullable(),
    /** Why it is as it is, in one sentence. */
    reason: z.string(),
    stable: rolloutArm,
    candidate: rolloutArm,
    policy: rolloutPolicy,
    sticky: z.boolean(),
    epoch: z.number().int(),
    weightPercent: z.number(),
    restarts: z.number().int(),
    /** A newer version that waits for the end of this rollout. */
    queuedVersion: z.number().int().nullable(),
    startedAt: z.string(),
    startedBy: z.string(),
    stepAt: z.string(),
    endedAt: z.string().nullable(),
    /** The last decision; null before the first look. */
    decision: decision.nullable(),
    pairs: pairEvidence.nullable(),
    fallbacks: z.number().int(),
  })
  .meta({ id: 'Rollout' });
export type Rollout = z.infer<typeof rollout>;

export const rolloutEvent = z
  .object({
    id: z.number().int(),
    rollout: z.string(),
    at: z.string(),
    /** `started`, `stage`, `step`, `waiting`, `held`, `resumed`, `restarted`, `queued`, `promoted`, `rolled_back`, `aborted`, `traffic_grew`. */
    type: z.string(),
    actor: z.string(),
    message: z.string(),
    /** A decision with what it looked at; null where a person or the world decided. */
    decision: decision.nullable(),
  })
  .meta({ id: 'RolloutEvent' });
export type RolloutEvent = z.infer<typeof rolloutEvent>;

const reason = z.string().max(1_000).default('');

/** `POST /endpoints/:endpoint/rollout`: by hand, where the rule does not. `version` left out: the newest that the rule wants. */
export const startRollout = z
  .strictObject({
    version: z.number().int().min(1).optional(),
    policy: policyReference.optional(),
    allowBreaking: z.boolean().default(false),
    reason,
  })
  .meta({ id: 'StartRollout' });
export type StartRollout = z.infer<typeof startRollout>;

export const rolloutVerbs = ['pause', 'resume', 'advance', 'promote', 'abort', 'rollback'] as const;
export const rolloutVerb = z.enum(rolloutVerbs);
export type RolloutVerb = z.infer<typeof rolloutVerb>;
/** `POST /rollouts/:id/<verb>` */
export const commandRollout = z.strictObject({ reason }).meta({ id: 'CommandRollout' });
export type CommandRollout = z.infer<typeof commandRollout>;

/** `GET /rollouts/:id/explain`: the decisive event, computed again from what it stored. */
export const explanation = z
  .object({
    rollout,
    event: rolloutEvent.nullable(),
    input: decisionInput.nullable(),
    recomputed: decision.nullable(),
    /** The stored decision and the recomputed one are the same. */
    agrees: z.boolean(),
    sentences: z.array(z.string()),
  })
  .meta({ id: 'Explanation' });
export type Explanation = z.infer<typeof explanation>;

/** `POST /endpoints/:endpoint/rollout/simulate`; what is left out is measured. */
export const simulateRollout = z
  .strictObject({
    policy: policyReference.optional(),
    requestsPerMinute: z.number().positive().max(10_000_000).optional(),
    errorRate: z.number().min(0).max(1).optional(),
    runs: z.number().int().min(50).max(5_000).default(500),
    seed: z.number().int().min(0).default(1),
  })
  .meta({ id: 'SimulateRollout' });
export type SimulateRollout = z.infer<typeof simulateRollout>;

export const rolloutSimulation = z
  .object({
    policy: rolloutPolicy,
    requestsPerMinute: z.number(),
    errorRate: z.number(),
    /** Where the two figures above come from, in words. */
    source: z.string(),
    runs: z.number().int(),
    falseRollbackRate: z.number(),
    /** Smallest error rate of the candidate that is rolled back in 95 % of runs; null: none below 100 %. */
    smallestDetectable: z.number().nullable(),
    /** Of an identical version, up to its bake. Null: more than half of the runs did not come to it. */
    medianPromoteMs: z.number().nullable(),
    p95PromoteMs: z.number().nullable(),
    /** Bad requests until the stop, for candidates of these error rates. */
    stops: z.array(
      z.object({ errorRate: z.number(), rolledBack: z.number(), medianBadRequests: z.number().nullable() }),
    ),
    margin: z.number(),
  })
  .meta({ id: 'RolloutSimulation' });
export type RolloutSimulation = z.infer<typeof rolloutSimulation>;

/** `GET /endpoints/:endpoint/quarantine` */
export const quarantineEntry = z
  .object({
    endpoint: z.string(),
    digest: z.string(),
    version: z.number().int(),
    reason: z.string(),
    rollout: z.string().nullable(),
    since: z.string(),
  })
  .meta({ id: 'QuarantineEntry' });
export type QuarantineEntry = z.infer<typeof quarantineEntry>;
