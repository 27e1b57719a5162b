import type { StableDay } from './baseline.decide.ts';
import { type CountSight, type Grown, grownSince, sumUp } from './history.plan.ts';

export interface DaySight {
  hours: Grown[];
  /** The newest counts, with what was noted of them. */
  current: CountSight[];
  peak: number | null;
  spanMs: number | null;
}

const leastSpanMs = 60_000;

/**
 * The day before of one version, with what came in since the last look. An endpoint that was never looked at has no
 * minutes: all that was counted of it is taken for one, because a busy endpoint must not pass for a quiet one.
 */
export function dayOf({ hours, current, peak, spanMs }: DaySight, version: number): StableDay {
  const grown = current.map(grownSince);
  const own = sumUp([...hours, ...grown].filter((one) => one.version === version))[0];
  const recent = grown.reduce((sum, { requests }) => sum + requests, 0);
  const rate = spanMs === null ? recent : (recent * 60_000) / Math.max(leastSpanMs, spanMs);
  return {
    requests: own?.requests ?? 0,
    errors: own?.errors ?? 0,
    latency: own?.latency ?? [],
    perMinute: Math.max(peak ?? 0, rate),
  };
}
