import { AppError } from '@perch/contracts';
import type { Epoch } from '../rollout.entity.ts';
import type { ArmTally, Tally } from './evidence.entity.ts';
import type { OtherMetric } from './read.plan.ts';

/** What one look at a Prometheus found of one arm: cumulative figures of the user's own making. */
export interface Figures {
  events: number;
  totals: number;
}
export interface ProvidedReading {
  stable: Figures;
  candidate: Figures;
  /** Version numbers that were asked for. */
  versions: { stable: number; candidate: number };
}
/** Where the figures of one arm stand. */
export interface ArmStand {
  version: number;
  /** What was counted up to; after a fall the lowest since. */
  at: Figures;
  /** They fell, and from where: a series that is away for a moment looks the same as a process that began anew. */
  fell: { from: Figures; sinceMs: number } | null;
}
/** What is kept of a provided metric of a rollout. */
export interface ProvidedBody {
  stable: ArmStand | null;
  candidate: ArmStand | null;
  /** Grown since the rollout's start, by epoch. */
  epochs: Record<string, { stable: Figures; candidate: Figures }>;
}
export const nothingRead: ProvidedBody = { stable: null, candidate: null, epochs: {} };

export interface QueryNames {
  endpoint: string;
  version: number;
  arm: 'stable' | 'candidate';
}

/** A query with `{{endpoint}}`, `{{version}}` and `{{arm}}` filled in, as they stand between quotes of PromQL. */
export function fillQuery(template: string, names: QueryNames): string {
  return template.replace(/\{\{\s*([a-z]+)\s*\}\}/gi, (_whole, name: string) => {
    const value = names[name as keyof QueryNames];
    if (value === undefined)
      throw new AppError('invalid', `query: {{${name}}} is not known; there are {{endpoint}}, {{version}}, {{arm}}`);
    return String(value).replace(/[\\"'`\n]/g, (sign) => `\\${sign === '\n' ? 'n' : sign}`);
  });
}

/**
 * The one figure of an answer of Prometheus' `GET /api/v1/query` (https://prometheus.io/docs/prometheus/latest/querying/api):
 * `{status: "success", data: {resultType: "vector", result: [{metric, value: [seconds, "1"]}]}}` or a scalar
 * `{resultType: "scalar", result: [seconds, "1"]}`; `{status: "error", errorType, error}` with 400, 422 or 503. An empty
 * vector is 0: a counter that never counted is not there yet.
 */
export function readAnswer(status: number, body: unknown): number {
  const answer = (body ?? {}) as { status?: unknown; errorType?: unknown; error?: unknown; data?: unknown };
  if (status !== 200 || answer.status !== 'success') {
    const said = answer.error === undefined ? '' : `: ${String(answer.errorType)}: ${String(answer.error)}`;
    throw new AppError('upstream', `it answers ${status}${said.slice(0, 300)}`);
  }
  const { resultType, result } = (answer.data ?? {}) as { resultType?: unknown; result?: unknown };
  if (resultType === 'scalar') return figureOf(result);
  if (resultType !== 'vector' || !Array.isArray(result))
    throw new AppError('upstream', `it answers with a ${String(resultType)}; the query must yield one figure`);
  if (result.length > 1)
    throw new AppError('upstream', `it answers with ${result.length} series; sum them up in the query`);
  return result.length === 0 ? 0 : figureOf((result[0] as { value?: unknown }).value);
}

function figureOf(pair: unknown): number {
  const text = Array.isArray(pair) ? pair[1] : undefined;
  const figure = typeof text === 'string' && text.trim() !== '' ? Number(text) : Number.NaN;
  if (Number.isFinite(figure) && figure >= 0) return figure;
  throw new AppError('upstream', `it answers ${String(text).slice(0, 40)}; wanted is a count, 0 or more`);
}

const zero: Figures = { events: 0, totals: 0 };
const each = (one: Figures, other: Figures, of: (a: number, b: number) => number): Figures => ({
  events: of(one.events, other.events),
  totals: of(one.totals, other.totals),
});
const grown = (before: Figures, now: Figures) => each(now, before, (a, b) => Math.max(0, a - b));
const add = (one: Figures, other: Figures) => each(one, other, (a, b) => a + b);
const reaches = (now: Figures, before: Figures) => now.events >= before.events && now.totals >= before.totals;

/** As long as Prometheus itself takes a series for alive that it does not hear of (its look-back). */
export const settleMs = 300_000;

/**
 * What grew since the last look at one arm. The first look, and the first at another version, only notes where the figures
 * stand. While they are below where they were nothing is counted: if they come back, a series was away and what it brings
 * back was counted before; if not, a process began anew and they are counted on from there.
 */
export function stepArm(last: ArmStand | null, now: Figures, version: number, nowMs: number) {
  const on = (growth: Figures) => ({ stand: { version, at: now, fell: null } as ArmStand, growth });
  if (!last || last.version !== version) return on(zero);
  const { at, fell } = last;
  if (!fell)
    return reaches(now, at)
      ? on(grown(at, now))
      : { stand: { version, at: now, fell: { from: at, sinceMs: nowMs } }, growth: zero };
  if (reaches(now, fell.from)) return on(grown(fell.from, now));
  if (nowMs - fell.sinceMs >= settleMs) return on(grown(at, now));
  return { stand: { version, at: each(at, now, Math.min), fell }, growth: zero };
}

/** Counts what grew since the last look for the epoch in force. */
export function addReading(body: ProvidedBody, now: ProvidedReading, epoch: number, nowMs: number): ProvidedBody {
  const before = body.epochs[epoch] ?? { stable: zero, candidate: zero };
  const stable = stepArm(body.stable, now.stable, now.versions.stable, nowMs);
  const candidate = stepArm(body.candidate, now.candidate, now.versions.candidate, nowMs);
  const counted = { stable: add(before.stable, stable.growth), candidate: add(before.candidate, candidate.growth) };
  return { stable: stable.stand, candidate: candidate.stand, epochs: { ...body.epochs, [epoch]: counted } };
}

/** Older figures than this say nothing about now. */
export const staleMs = 60_000;

export interface ProvidedSight {
  metric: string;
  body: ProvidedBody;
  /** Since the last look that yielded figures; null: there was none. */
  ageMs: number | null;
  /** Why the last look yielded none. */
  fault: string | null;
}

function holdOf({ metric, body, ageMs, fault }: ProvidedSight, whole: ArmTally): string | null {
  if (fault) return `${metric}: its Prometheus cannot be heard (${fault}), so nothing advances.`;
  if (ageMs === null) return `${metric}: its Prometheus was not asked yet.`;
  if (ageMs > staleMs) return `${metric}: its figures are ${Math.round(ageMs / 1_000)} s old, so nothing advances.`;
  if (body.stable?.fell || body.candidate?.fell)
    return `${metric}: its figures fell; until it is clear whether they come back nothing advances.`;
  const odd = whole.stable.x > whole.stable.n || whole.candidate.x > whole.candidate.n;
  return odd ? `${metric}: its queries yield more events than requests, so nothing advances.` : null;
}

/**
 * A provided metric as decisions take it. Figures of a Prometheus know no users, so under a sticky key they never roll
 * back (a single user may stand behind all of them) and only hold a promotion back.
 */
export function providedMetric(sight: ProvidedSight, epochs: readonly Epoch[], sticky: boolean): OtherMetric {
  const figures = (epoch: number | undefined, arm: 'stable' | 'candidate') =>
    sight.body.epochs[epoch ?? -1]?.[arm] ?? zero;
  const whole = (arm: 'stable' | 'candidate') => epochs.reduce((sum, { epoch }) => add(sum, figures(epoch, arm)), zero);
  const tally = ({ events, totals }: Figures): Tally => ({ n: Math.round(totals), x: Math.round(events) });
  const capped = ({ n, x }: Tally): Tally => ({ n, x: Math.min(n, x) });
  const both = (of: (arm: 'stable' | 'candidate') => Figures): ArmTally => ({
    stable: tally(of('stable')),
    candidate: tally(of('candidate')),
  });
  const [current, all] = [both((arm) => figures(epochs.at(-1)?.epoch, arm)), both(whole)];
  const counted = sticky ? [] : epochs.filter(({ share }) => share > 0);
  return {
    counts: {
      metric: sight.metric,
      epochs: counted.map(({ epoch, share }) => ({
        epoch,
        share,
        stableEvents: tally(figures(epoch, 'stable')).x,
        candidateEvents: tally(figures(epoch, 'candidate')).x,
      })),
      stable: capped(current.stable),
      candidate: capped(current.candidate),
      whole: { stable: capped(all.stable), candidate: capped(all.candidate) },
    },
    candidates: null,
    hold: holdOf(sight, all),
  };
}
