import { z } from 'zod';
import { comparison } from './rollout-policy.schema.ts';

/** Users under a sticky key fall into so many buckets; the candidate owns the lowest. */
export const bucketCount = 10_000;

/** How many buckets a candidate of this share owns: whole ones, and each side keeps at least one while it has a share at all. */
export const bucketsOf = (share: number): number =>
  share <= 0 ? 0 : share >= 1 ? bucketCount : Math.min(bucketCount - 1, Math.max(1, Math.round(share * bucketCount)));

const count = z.number().int().min(0);

/** A set of buckets: bit b of byte b >> 3 is bucket b; base64 of `bucketCount` / 8 bytes, zero bytes at the end left out. */
export const bucketSet = z
  .string()
  .max(1_700)
  .regex(/^[A-Za-z0-9+/]*={0,2}$/);

/**
 * What was counted of one metric: `n` requests judged by it, `x` of them with the event. Under a sticky key also the
 * buckets that were judged and those with an event.
 */
export const metricEvidence = z.object({ n: count, x: count, seen: bucketSet.optional(), hit: bucketSet.optional() });
export type MetricEvidence = z.infer<typeof metricEvidence>;

/**
 * By metric: `error`, `slow`, `contract`, and the names of flags. `ended`: of the requests that arrived in a report interval
 * that is over, all that have ended. `closed`: whole intervals only, in order, for promotion.
 */
export const armEvidence = z.object({
  ended: z.record(z.string(), metricEvidence),
  closed: z.record(z.string(), metricEvidence),
  /** Distinct requests with an event of any metric, of all that have ended. Absent: not told; then the metric with most events speaks for all. */
  bad: count.optional(),
  /**
   * Requests of the intervals that `ended` speaks of which are still on their way: as it is now, not cumulative. Absent: not
   * told, and `ended` may be of any intervals; then the rollback rule takes `closed`.
   */
  open: count.optional(),
});
export type ArmEvidence = z.infer<typeof armEvidence>;

/** Pairs of a shadow: what stable answered and what the candidate answered to the same request. */
export const pairEvidence = z.object({
  pairs: count,
  /** Compared outputs that agree. */
  agree: count,
  compared: count,
  /** By metric: pairs in which only one side had the event. */
  discordant: z.record(z.string(), z.object({ stable: count, candidate: count })),
  /** Not sent: over the budget, or no server took it. */
  dropped: count,
});
export type PairEvidence = z.infer<typeof pairEvidence>;

/**
 * What one worker process of a router counted in one epoch of one rollout since the router's boot: cumulative, so a report
 * may come twice or late. Buckets may be left out when they did not change: sets are joined, never replaced.
 */
export const workerEvidence = z.object({
  rollout: z.string(),
  epoch: z.number().int().min(0),
  worker: z.number().int().min(0),
  stable: armEvidence,
  candidate: armEvidence,
  pairs: pairEvidence.optional(),
  /** Candidate requests that stable answered in the end. */
  fallbacks: count,
  /** Requests without the sticky key: assigned by chance and judged by nobody. */
  keyless: count,
});
export type WorkerEvidence = z.infer<typeof workerEvidence>;

/** What routers need of the rollout of an endpoint; `arms` of the route holds the shares. */
export const routeRollout = z.object({
  id: z.string(),
  epoch: z.number().int().min(0),
  /** Deployment ids; both have a target, or the rollout is not in the table. */
  stable: z.string(),
  candidate: z.string(),
  /** Hashed together with the sticky key. */
  salt: z.string(),
  /** Without an accepted report for so long (monotonic clock) the candidate gets nothing, and nothing is counted. */
  leaseMs: z.number().int(),
  /** Latency above which a reply is slow; null: nobody is judged by it. */
  slowMs: z.number().nullable(),
  /** So long after this router first served the epoch. */
  slowGraceMs: z.number().int(),
  /** Metrics to count beside `error`: `slow`, `contract`, names of flags. */
  metrics: z.array(z.string()),
  fallback: z.object({ budgetPercent: z.number() }).nullable(),
  shadow: z.object({ sample: z.number(), compare: comparison }).nullable(),
  /** Base64 of the key that signs feedback tokens; null: replies carry none. */
  feedbackKey: z.string().nullable(),
});
export type RouteRollout = z.infer<typeof routeRollout>;

/** What a feedback token says; `iat` in seconds. The token is `<base64url of this as JSON>.<base64url of its HMAC-SHA-256>`. */
export const feedbackClaims = z.object({
  r: z.string(),
  e: z.number().int(),
  a: z.enum(['stable', 'candidate']),
  /** Bucket; -1 without a sticky key. */
  b: z.number().int(),
  /** Request id. */
  q: z.string().max(128),
  iat: z.number().int(),
});
export type FeedbackClaims = z.infer<typeof feedbackClaims>;

/** `POST /api/v1/feedback` */
export const feedback = z
  .strictObject({ token: z.string().min(1).max(2_000), flag: z.string().max(64), value: z.boolean().default(true) })
  .meta({ id: 'Feedback' });
export type Feedback = z.infer<typeof feedback>;

/** `counted` false: this reply's feedback for the flag is known already; the first one stands. */
export const feedbackResult = z
  .object({ counted: z.boolean(), rollout: z.string(), message: z.string() })
  .meta({ id: 'FeedbackResult' });
export type FeedbackResult = z.infer<typeof feedbackResult>;
