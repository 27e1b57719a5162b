import { AppError } from '@perch/contracts/plain';
import type { Binding, Cell } from './cell.ts';
import type { Job } from './job.ts';
import { type CellEnd, culpritOf, verdictOf } from './verdict.decide.ts';

/** Answers the calls of a cell that has ended, or has them tried again. */
export function settleEnded(label: string, cell: Cell, end: CellEnd, again: (job: Job, tries: number) => void): void {
  const culprit = culpritOf(end);
  const nowMs = performance.now();
  const jobs = [...cell.jobs];
  cell.jobs.clear();
  for (const [id, job] of jobs) {
    const { hook, tries } = job;
    const overdue = id === culprit && nowMs >= job.deadlineAtMs;
    const verdict = verdictOf({ id, hook, tries, overdue }, end);
    if (verdict.kind === 'again') again(job, verdict.tries);
    else if (verdict.code === 'module') job.reject(new AppError('module', `module ${label}: ${verdict.words}`));
    else {
      const words = `${verdict.words} ${Math.round(job.limitMs)} ms; its ${end.kind} was ended`;
      job.reject(new AppError('timeout', `module ${label}: ${words}`));
    }
  }
}

/** Until a cell is there and has read the module: a busy machine takes seconds. */
const startLimitMs = 60_000;

/** Loads a binding in a cell, which is ended when that takes too long: it may stand still. */
export async function loadWithin(limitMs: number, cell: Cell, binding: Binding): Promise<void> {
  await within(startLimitMs, cell, cell.ready, 'its top level');
  await within(limitMs, cell, cell.bind(binding), 'load');
}

async function within(limitMs: number, cell: Cell, work: Promise<void>, what: string): Promise<void> {
  work.catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const words = `${what} ran longer than ${limitMs} ms`;
      reject(new AppError('module', `module ${cell.label}: ${words}; its ${cell.kind} was ended`));
      cell.end(words);
    }, limitMs);
  });
  await Promise.race([work, limit]).finally(() => clearTimeout(timer));
}
