import { AppError, innerMessage, type ObservedModel } from '@perch/contracts';
import { TritonFault } from '@perch/triton/control';
import { FailureBook } from './failure-book.ts';
import type { ModelState } from './model-state.decide.ts';
import { LoadFailure, type ModelFacts, type Task } from './sync.apply.ts';
import type { ActionKind, Held, Indexed } from './sync.plan.ts';

/** What this process knows about models and could not ask of Triton or the disk. */
export class ModelLedger {
  readonly failures: FailureBook;
  private readonly loadDeadlineMs: number;
  private readonly facts = new Map<string, ModelFacts>();
  private readonly untried = new Set<string>();
  private readonly loadingSince = new Map<string, number>();
  private readonly since = new Map<string, { state: string; at: string }>();

  constructor(loadDeadlineMs: number, random?: () => number) {
    this.loadDeadlineMs = loadDeadlineMs;
    this.failures = new FailureBook(random);
  }

  /** Takes note of Triton's index: what is no longer READY must prove itself again. */
  noteIndex(index: ReadonlyMap<string, Indexed> | undefined, nowMs: number): void {
    if (index === undefined) this.failures.clearRefusals();
    for (const name of this.facts.keys()) if (index?.get(name)?.state !== 'READY') this.facts.delete(name);
    for (const name of this.loadingSince.keys())
      if (index?.get(name)?.state !== 'LOADING') this.loadingSince.delete(name);
    for (const [name, { state }] of index ?? [])
      if (state === 'LOADING' && !this.loadingSince.has(name)) this.loadingSince.set(name, nowMs);
  }

  held(busy: ReadonlyMap<string, ActionKind>, nowMs: number): Held {
    return {
      busy,
      failures: this.failures.all,
      warmed: new Set(this.facts.keys()),
      untried: this.untried,
      stuck: this.stuck(nowMs),
      suspects: this.failures.suspects(),
    };
  }

  stuck(nowMs: number): Set<string> {
    const late = [...this.loadingSince].filter(([, since]) => nowMs - since > this.loadDeadlineMs);
    return new Set(late.map(([name]) => name));
  }

  succeeded(task: Task, facts: ModelFacts | undefined): void {
    // A step in front of a load says nothing about what the load does to Triton.
    const before = this.failures.all.get(task.name);
    if (!before?.crashes || task.kind === 'load' || task.kind === 'warm') this.failures.clear(task.name);
    if (task.kind === 'stage') this.untried.add(task.name);
    if (task.kind === 'load' || task.kind === 'remove') this.untried.delete(task.name);
    if (facts) this.facts.set(task.name, facts);
  }

  failed(task: Task, error: unknown, nowMs: number): void {
    if (task.signal.aborted) return;
    const digest = task.model?.digest ?? '';
    if (error instanceof AppError && error.terminal && !(error instanceof TritonFault)) {
      if (error instanceof LoadFailure) this.untried.delete(task.name);
      this.failures.giveUp(task.name, digest, error.message);
    } else if (task.kind === 'load' && error instanceof TritonFault && error.kind === 'connection') {
      this.failures.noteCrash(task.name, digest, error.text, nowMs);
    } else {
      this.failures.postpone(task.name, digest, reasonOf(task.kind, error), nowMs);
    }
  }

  /** The model's state as it is reported; `since` is when this process first saw it so. */
  report(name: string, { state, reason }: ModelState, nowMs: number): ObservedModel {
    const seen = this.since.get(name);
    const at = seen?.state === state ? seen.at : new Date(nowMs).toISOString();
    this.since.set(name, { state, at });
    return { state, reason, since: at, ...(state === 'ready' ? this.facts.get(name) : {}) };
  }

  forgetOthers(names: ReadonlySet<string>): void {
    this.failures.keepOnly(names);
    for (const known of [this.since, this.untried])
      for (const name of known.keys()) if (!names.has(name)) known.delete(name);
  }
}

/** Words that may leave the process: our own and Triton's as they stand, of anything else only its kind. */
function reasonOf(kind: ActionKind, error: unknown): string {
  if (error instanceof TritonFault) return error.text;
  if (error instanceof AppError) return error.message;
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === 'ENOSPC' || code === 'EDQUOT') return `no_space: the disk was full at the step "${kind}"; free some`;
  return `the step "${kind}" failed: ${code ?? innerMessage(error).slice(0, 200)}`;
}
