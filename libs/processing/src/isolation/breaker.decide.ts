/** When cells of one module ended, and until when none is started. Times by any one clock, in milliseconds. */
export interface BreakerState {
  /** Of the last minute. */
  endedAtMs: readonly number[];
  closedUntilMs: number;
  /** How long it was closed the last time; 0: not lately. */
  lastBackoffMs: number;
}

export const freshBreaker: BreakerState = { endedAtMs: [], closedUntilMs: 0, lastBackoffMs: 0 };

/** So many ends within so long are a loop. */
const mostEnds = 5;
const windowMs = 30_000;
const firstBackoffMs = 1_000;
const longestBackoffMs = 30_000;
/** Without an end for so long, it begins from the start. */
const forgiveMs = 60_000;

/** A cell ended before its time. Cells may be started again at once until they do so in a loop; then the wait doubles. */
export function afterEnd(state: BreakerState, nowMs: number): BreakerState {
  const last = state.endedAtMs.at(-1);
  const calm = last === undefined || nowMs - last > forgiveMs;
  const lastBackoffMs = calm ? 0 : state.lastBackoffMs;
  const endedAtMs = [...state.endedAtMs.filter((at) => nowMs - at <= windowMs), nowMs];
  // once it was closed, the first end after that closes it again
  const loops = endedAtMs.length >= mostEnds || (lastBackoffMs > 0 && nowMs - state.closedUntilMs <= lastBackoffMs);
  if (!loops) return { endedAtMs, closedUntilMs: state.closedUntilMs, lastBackoffMs };
  const backoffMs = Math.min(longestBackoffMs, lastBackoffMs === 0 ? firstBackoffMs : lastBackoffMs * 2);
  return { endedAtMs: [nowMs], closedUntilMs: nowMs + backoffMs, lastBackoffMs: backoffMs };
}

/** 0: cells may be started. */
export const closedForMs = ({ closedUntilMs }: BreakerState, nowMs: number): number =>
  Math.max(0, closedUntilMs - nowMs);
