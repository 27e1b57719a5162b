import { setTimeout as pause } from 'node:timers/promises';
import { AppError } from '@perch/contracts';
import { parseDuration } from './duration.ts';

export interface WaitState {
  done: boolean;
  /** Where it stands, in words: shown when time runs out. */
  standing: string;
}

/**
 * Asks `look` again and again until it says done. Throws `timeout` naming the last standing; whatever `look` throws
 * ends the waiting at once, except that nobody answered: a control plane may be starting again.
 */
export async function waitUntil(look: () => Promise<WaitState>, timeoutMs: number, thing: string): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  let standing = 'not looked yet';
  for (;;) {
    const state = await look().catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'unavailable') return { done: false, standing: error.message };
      throw error;
    });
    if (state.done) return;
    standing = state.standing;
    if (Date.now() >= deadline)
      throw new AppError('timeout', `${thing}: not there after ${timeoutMs / 1_000} s; last seen: ${standing}`);
    await pause(Math.min(200, Math.max(1, deadline - Date.now())));
  }
}

/** Milliseconds of `--wait[=time]`; undefined: not asked for. */
export const waitMs = (option: unknown): number | undefined =>
  typeof option === 'string' ? parseDuration(option, '--wait') : undefined;
