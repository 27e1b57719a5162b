/** How requests are put together. */
export interface BatchPolicy {
  /** Off: each request is computed alone. */
  dynamic: boolean;
  /** Most rows of one batch. */
  maxRows: number;
  /** Sizes that are sent as soon as they are reached; empty: `maxRows` is the one. */
  preferredRows: readonly number[];
  /** How long the oldest request may wait for company. */
  maxDelayMs: number;
}

export interface Pending {
  rows: number;
  /** Requests of equal key agree in every shape but the first size. */
  key: string;
  queuedAtMs: number;
}

/** Take the first `take` requests now, or look again after `waitMs`. */
export type BatchPlan = { take: number } | { waitMs: number };

/**
 * What to do with the queue when an instance is free. The head of the queue that fits into one batch goes at once when it
 * cannot grow (the next request does not fit, or differs in shape), when it reaches a preferred size, or when the oldest
 * has waited its time; otherwise it waits. Order is never changed.
 */
export function planBatch(queue: readonly Pending[], policy: BatchPolicy, nowMs: number): BatchPlan {
  const [first] = queue;
  if (!first) return { waitMs: Number.POSITIVE_INFINITY };
  if (!policy.dynamic) return { take: 1 };
  const preferred = new Set(policy.preferredRows.length > 0 ? policy.preferredRows : [policy.maxRows]);
  let rows = 0;
  let fitting = 0;
  let best = 0;
  for (const pending of queue) {
    if (pending.key !== first.key || (fitting > 0 && rows + pending.rows > policy.maxRows)) break;
    rows += pending.rows;
    fitting += 1;
    if (preferred.has(rows)) best = fitting;
  }
  if (best > 0) return { take: best };
  const waitedMs = nowMs - first.queuedAtMs;
  const canGrow = fitting === queue.length && rows < policy.maxRows;
  if (!canGrow || waitedMs >= policy.maxDelayMs) return { take: fitting };
  return { waitMs: policy.maxDelayMs - waitedMs };
}
