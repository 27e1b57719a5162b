import { AppError, innerMessage, type ObservedModel, type ServerUsage } from '@perch/contracts';
import { TritonFault } from '@perch/triton/control';
import type { CrashBook, CrashEvidence } from './crash-book.ts';
import { FailureBook } from './failure-book.ts';
import type { ModelState } from './model-state.decide.ts';
import { LoadFailure, type ModelFacts, type Task } from './sync.apply.ts';
import type { ActionKind, Held, Indexed } from './sync-world.ts';

/** Triton's end behind a broken connection. Undefined: it did not end, the connection alone broke. */
export type Crash = { evidence: CrashEvidence | 'asked'; words: string } | undefined;

export interface LedgerParts {
  loadDeadlineMs: number;
  crashes: CrashBook;
  random?: () => number;
}

/** What this process knows about models and could not ask of Triton or the disk. */
export class ModelLedger {
  readonly failures: FailureBook;
  readonly crashes: CrashBook;
  private readonly loadDeadlineMs: number;
  private readonly facts = new Map<string, ModelFacts>();
  private readonly memory = new Map<string, ServerUsage>();
  private readonly untried = new Set<string>();
  private readonly loadingSince = new Map<string, number>();
  private readonly since = new Map<string, { state: string; at: string }>();

  constructor({ loadDeadlineMs, crashes, random }: LedgerParts) {
    this.loadDeadlineMs = loadDeadlineMs;
    this.crashes = crashes;
    this.failures = new FailureBook(random);
  }

  /** What took the server down before is not tried again under the same digest. */
  noteDesired(models: ReadonlyMap<string, { digest: string }>): void {
    for (const [name, { digest }] of models) {
      const reason = this.crashes.heldBack(name, digest);
      if (reason !== undefined) this.failures.giveUp(name, digest, reason, true);
    }
  }

  /** Takes note of Triton's index: what is no longer READY must prove itself again. */
  noteIndex(
    index: ReadonlyMap<string, Indexed> | undefined,
    nowMs: number,
    busy: ReadonlyMap<string, ActionKind> = new Map(),
  ): void {
    if (index === undefined) this.failures.clearRefusals();
    else this.crashes.settleBefore((name) => (index.get(name)?.state ?? '') !== '');
    this.crashes.keepComing((name) => busy.has(name) || index?.get(name)?.state === 'READY');
    for (const known of [this.facts, this.memory])
      for (const name of known.keys()) if (index?.get(name)?.state !== 'READY') known.delete(name);
    for (const name of this.loadingSince.keys())
      if (index?.get(name)?.state !== 'LOADING') this.loadingSince.delete(name);
    for (const [name, { state }] of index ?? [])
      if (state === 'LOADING' && !this.loadingSince.has(name)) this.loadingSince.set(name, nowMs);
  }

  held(busy: ReadonlyMap<string, ActionKind>, nowMs: number): Omit<Held, 'measuring' | 'loadsHeld'> {
    return {
      busy,
      failures: this.failures.all,
      warmed: new Set(this.facts.keys()),
      untried: this.untried,
      stuck: this.stuck(nowMs),
      suspects: this.crashes.suspects(),
    };
  }

  stuck(nowMs: number): Set<string> {
    const late = [...this.loadingSince].filter(([, since]) => nowMs - since > this.loadDeadlineMs);
    return new Set(late.map(([name]) => name));
  }

  began(task: Task): void {
    if (task.kind === 'load' || task.kind === 'warm') this.crashes.begin(task.name, task.model?.digest ?? '');
  }

  succeeded(task: Task, facts: ModelFacts | undefined, memory: ServerUsage | undefined): void {
    this.failures.clear(task.name);
    if (task.kind === 'stage' || task.kind === 'renew') this.untried.add(task.name);
    // Under a literal name another one serves before the one that was just loaded has answered.
    if (task.kind === 'load') this.facts.delete(task.name);
    if (task.kind === 'load' || task.kind === 'remove') this.untried.delete(task.name);
    if (facts) this.facts.set(task.name, facts);
    if (memory) this.memory.set(task.name, memory);
    // Only with its first answer it is in.
    if (task.kind === 'warm') this.crashes.succeeded(task.name);
  }

  failed(task: Task, error: unknown, nowMs: number, crash?: Crash): void {
    const { name, kind } = task;
    const digest = task.model?.digest ?? '';
    if (task.signal.aborted) {
      this.crashes.left(name);
      return;
    }
    if (error instanceof AppError && error.terminal && !(error instanceof TritonFault)) {
      if (error instanceof LoadFailure) this.untried.delete(name);
      this.failures.giveUp(name, digest, error.message);
      this.crashes.succeeded(name);
      return;
    }
    const reason = reasonOf(kind, error);
    if (crash && crash.evidence !== 'asked' && (kind === 'load' || kind === 'warm')) {
      const heldBack = this.crashes.crashed(name, digest, crash.evidence, crash.words);
      if (heldBack !== undefined) {
        this.failures.giveUp(name, digest, heldBack, true);
        return;
      }
    }
    this.crashes.left(name);
    this.failures.postpone(name, digest, reason, nowMs);
  }

  /** The server had to be restarted because of this model. */
  cured(name: string, digest: string, reason: string): void {
    this.crashes.holdBack(name, digest, reason);
    this.failures.giveUp(name, digest, reason, true);
  }

  forgive(name: string): void {
    this.crashes.forgive(name);
    this.failures.clear(name);
  }

  /** The model's state as it is reported; `since` is when this process first saw it so. */
  report(name: string, { state, reason }: ModelState, nowMs: number): ObservedModel {
    const seen = this.since.get(name);
    const at = seen?.state === state ? seen.at : new Date(nowMs).toISOString();
    this.since.set(name, { state, at });
    const memory = this.memory.get(name);
    return {
      state,
      reason,
      since: at,
      ...(state === 'ready' ? this.facts.get(name) : {}),
      ...(state === 'ready' && memory ? { memory } : {}),
    };
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
