import { z } from 'zod';

const percent = z.number().gt(0).lt(100);
const ms = (least: number, most: number) => z.number().int().min(least).max(most);
const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;

/** Name of a flag that processing raises or that feedback brings later: `ctx.flag('low_confidence')`. */
export const flagName = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,63}$/, 'a flag is 1 to 64 of a-z 0-9 _ and starts with a letter');

/** How much worse a candidate may be and still be promoted: the larger of both. Shares of requests, 0.005 = half a point. */
export const margin = z
  .strictObject({ absolute: z.number().min(0).max(1), relative: z.number().min(0).max(10) })
  .refine(({ absolute, relative }) => absolute > 0 || relative > 0, 'a margin of zero can never be proved')
  .meta({ id: 'Margin' });
export type Margin = z.infer<typeof margin>;

const guarded = z.union([z.literal(false), z.strictObject({ margin: margin.optional() })]);

/** Numbers come from a Prometheus of the user's: each query yields one figure for each arm (see `{{version}}` and `{{arm}}`). */
export const providedMetric = z.strictObject({
  name: flagName,
  url: z.url(),
  /** Cumulative events and cumulative requests of one arm; `{{endpoint}}`, `{{version}}`, `{{arm}}` are filled in. */
  events: z.string().min(1).max(4_000),
  totals: z.string().min(1).max(4_000),
  margin: margin.optional(),
});
export type ProvidedMetric = z.infer<typeof providedMetric>;

export const flagMetric = z.strictObject({
  name: flagName,
  /** Comes by `POST /feedback`, so long after the reply at most: only cohorts older than this are judged. */
  feedbackWithinMs: ms(1_000, weekMs).optional(),
  margin: margin.optional(),
});
export type FlagMetric = z.infer<typeof flagMetric>;

/** How outputs of a pair are compared. `auto`: arg-max for class scores, cosine for vectors, numeric else, exact for whole numbers and text. */
export const comparison = z.strictObject({
  by: z.enum(['auto', 'exact', 'numeric', 'cosine', 'argmax']).default('auto'),
  /** For `numeric`: |a − b| ≤ absolute + relative · |b|. */
  absolute: z.number().min(0).default(1e-3),
  relative: z.number().min(0).default(1e-2),
  /** For `cosine`. */
  least: z.number().min(-1).max(1).default(0.99),
});
export type Comparison = z.infer<typeof comparison>;

export const shadowPolicy = z.strictObject({
  /** Share of stable's requests that is also sent to the candidate. */
  sample: z.number().gt(0).max(1).default(0.1),
  /** The stage ends with so many compared pairs … */
  pairs: z.number().int().min(1).max(1_000_000).default(200),
  /** … or, with fewer, after so long. */
  mostMs: ms(1_000, weekMs).default(hourMs),
  compare: comparison.prefault({}),
  /** Outputs that agree less often than this hold the rollout. Left out: agreement is shown and decides nothing. */
  leastAgreement: z.number().min(0).max(1).optional(),
});
export type ShadowPolicy = z.infer<typeof shadowPolicy>;

const clockStep = z.strictObject({ weightPercent: percent, forMs: ms(100, weekMs) });

const increasing = (weights: readonly number[]) => weights.every((weight, at) => at === 0 || weight > weights[at - 1]!);

/**
 * How traffic moves from a stable deployment to a candidate. Every number is a field; `{}` is the policy `default`.
 * Ramps: `auto` goes as fast as the evidence allows through `weightsPercent`; `steps` takes each given weight once it is
 * provably within the margin; `clock` goes by time alone, with the rollback rule armed.
 */
export const rolloutPolicy = z
  .strictObject({
    ramp: z.enum(['auto', 'steps', 'clock']).default('auto'),
    weightsPercent: z.array(percent).min(1).max(32).default([1, 5, 25, 50]),
    /** For `clock`, in the place of `weightsPercent`. */
    clock: z.array(clockStep).min(1).max(32).optional(),
    /** Steps are at least so far apart. */
    dwellMs: ms(100, weekMs).default(60_000),
    bakeMs: ms(100, weekMs).default(600_000),
    /** Without enough evidence for so long: `onMaxWait`. */
    maxWaitMs: ms(100, 4 * weekMs).default(hourMs),
    onMaxWait: z.enum(['hold', 'promote', 'abort']).default('hold'),
    /** The old version stays loaded so long after promotion. */
    rollbackWindowMs: ms(0, weekMs).default(hourMs),
    /** Until the candidate has proved itself on every server; then the rollout fails. */
    verifyMs: ms(1_000, weekMs).default(hourMs),
    /** Most false rollbacks, as a share of rollouts of equal versions. */
    alpha: z.number().gt(0).lt(1).default(0.05),
    /** Error rate of each arm's confidence sequence. */
    promotionAlpha: z.number().gt(0).lt(1).default(0.025),
    error: guarded.default({}),
    slow: guarded.default({}),
    contract: guarded.default({}),
    flags: z.array(flagMetric).max(16).default([]),
    provided: z.array(providedMetric).max(8).default([]),
    /** `auto`: the smallest margin that the measured rate can prove within `withinMs`; said before the start. */
    margin: z.enum(['auto']).optional(),
    withinMs: ms(1_000, 4 * weekMs).optional(),
    /** For `auto` ramps: so many bad requests a minute are risked before anything is proved. */
    badBudgetPerMinute: z.number().min(0).default(5),
    /** Under a sticky key: no verdict on promotion below so many users on the candidate. */
    leastBuckets: z.number().int().min(1).max(10_000).default(200),
    /** Replies of the first moments of a step are not judged by `slow`. */
    slowGraceMs: ms(0, hourMs).default(30_000),
    /** Left out: the endpoint's `slo.latencyMs`, else 1.5 × stable's p99 of the day before. */
    slowMs: z.number().positive().optional(),
    shadow: shadowPolicy.optional(),
    /** A failed or late answer of the candidate is replaced by stable's, for at most this share of the endpoint's requests or 50 in 10 s, whichever is more. False: never. */
    fallback: z
      .union([z.literal(false), z.strictObject({ budgetPercent: z.number().gt(0).max(100).default(20) })])
      .prefault({}),
    /** A newer version starts the rollout anew so often, then it waits for the end. */
    mostRestarts: z.number().int().min(0).max(100).default(2),
  })
  .superRefine((value, ctx) => {
    const fault = (path: string, message: string) => ctx.addIssue({ code: 'custom', path: [path], message });
    if (!increasing(value.weightsPercent)) fault('weightsPercent', 'wants weights that increase');
    if (value.clock && !increasing(value.clock.map(({ weightPercent }) => weightPercent)))
      fault('clock', 'wants weights that increase');
    if ((value.ramp === 'clock') !== (value.clock !== undefined))
      fault('clock', 'goes with ramp clock, and ramp clock wants it: the weights and how long each lasts');
    if ((value.margin === 'auto') !== (value.withinMs !== undefined))
      fault('withinMs', 'goes with margin auto, and margin auto wants it');
    const names = [...value.flags, ...value.provided].map(({ name }) => name);
    if (new Set(names).size < names.length) fault('flags', 'names a metric twice');
    if (names.some((name) => ['error', 'slow', 'contract'].includes(name)))
      fault('flags', 'error, slow and contract are metrics of their own');
    if (value.error === false && value.slow === false && value.contract === false && names.length === 0)
      fault('error', 'a rollout without any metric decides by nothing; leave at least one on');
  })
  .meta({ id: 'RolloutPolicy' });
export type RolloutPolicy = z.infer<typeof rolloutPolicy>;
export type RolloutPolicyInput = z.input<typeof rolloutPolicy>;

/** Policies that have a name. `quick` is for demonstrations and tests on a desk. */
export const namedPolicies = {
  default: rolloutPolicy.parse({}),
  quick: rolloutPolicy.parse({ dwellMs: 2_000, bakeMs: 5_000, slowGraceMs: 1_000 }),
} as const satisfies Record<string, RolloutPolicy>;

/** In a spec: the name of a policy, or what differs from `default`. */
export const policyReference = z.union([z.enum(['default', 'quick']), rolloutPolicy]).meta({ id: 'PolicyReference' });
export type PolicyReference = z.infer<typeof policyReference>;
export const policyOf = (reference: PolicyReference | undefined): RolloutPolicy =>
  typeof reference === 'object' ? reference : namedPolicies[reference ?? 'default'];
