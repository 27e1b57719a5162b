import { AppError } from '@perch/contracts';

/** Rejects with `timeout` when `work` has not settled in time; `work` itself goes on. */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number, thing: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AppError('timeout', `${thing} took over ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Delay before try `attempt` (1, 2, …): doubling from `firstMs` to `maxMs`, spread over its upper half by `random`. */
export function backoffMs(attempt: number, firstMs: number, maxMs: number, random: () => number = Math.random): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(full / 2 + (full / 2) * random());
}

/** Resolves after `ms`, or at once (without throwing) when `signal` aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}
