export interface RestartSettings {
  /** Pause before the first restart; it doubles with each further one. */
  firstMs: number;
  maxMs: number;
  /** Up for this long: the next pause is the first again. */
  resetMs: number;
}

export const restartSettings: RestartSettings = { firstMs: 1_000, maxMs: 30_000, resetMs: 60_000 };

/** How long to wait before the server is started again. `failures`: short lives in a row, this one counted. */
export function decideRestart(
  life: { upMs: number; failuresBefore: number },
  { firstMs, maxMs, resetMs }: RestartSettings,
): { failures: number; waitMs: number } {
  const failures = life.upMs >= resetMs ? 1 : life.failuresBefore + 1;
  return { failures, waitMs: Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30)) };
}
