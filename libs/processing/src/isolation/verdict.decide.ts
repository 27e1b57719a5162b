import type { CallHook } from './wire.ts';

/** Why a cell ended. `running`: the call whose hook ran (0: none did); `ran`: calls that a stray error may be of. */
export interface CellEnd {
  words: string;
  kind: 'worker' | 'process';
  running: number;
  ran: readonly number[];
  /** The highest id of a call that it had begun. */
  lastBegun: number;
}

export interface EndedJob {
  id: number;
  hook: CallHook;
  /** Cells that ended after they had begun it, this one left out. */
  tries: number;
  overdue: boolean;
}

export type Verdict = { kind: 'again'; tries: number } | { kind: 'fail'; code: 'module' | 'timeout'; words: string };

/** The call at fault, where it can be told: the one whose hook ran, or the only one that ran in the turn of a stray error. */
export function culpritOf({ running, ran }: CellEnd): number | undefined {
  if (running > 0) return running;
  return ran.length === 1 ? ran[0] : undefined;
}

/**
 * What becomes of a call whose cell ended. The call at fault fails. Others are tried again in another cell, once, since a
 * call that ends two cells may be at fault itself; those that had not begun as often as it takes; a `process` that has begun may have had effects and is not.
 */
export function verdictOf(job: EndedJob, end: CellEnd): Verdict {
  const { id, hook, tries, overdue } = job;
  const begun = id <= end.lastBegun;
  if (culpritOf(end) === id)
    return overdue
      ? { kind: 'fail', code: 'timeout', words: `${hook} ran longer than` }
      : { kind: 'fail', code: 'module', words: `${hook} ended its ${end.kind}: ${end.words}` };
  if (hook === 'process' && begun)
    return { kind: 'fail', code: 'module', words: `its ${end.kind} ended while ${hook} was under way (${end.words}), and what it may have done is not done twice` }; // biome-ignore format: one sentence
  if (!begun) return { kind: 'again', tries };
  if (tries >= 1) return { kind: 'fail', code: 'module', words: `its ${end.kind} ended twice while ${hook} was in it, the last time by: ${end.words}` }; // biome-ignore format: one sentence
  return { kind: 'again', tries: tries + 1 };
}
