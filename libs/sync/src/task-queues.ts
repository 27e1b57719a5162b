import { setMaxListeners } from 'node:events';
import { errorCodeOf } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import { TritonFault } from '@perch/triton/control';
import type { LoadMeter } from './load-meter.ts';
import type { Crash, ModelLedger } from './model-ledger.ts';
import { LoadFailure, type ModelFacts, type SyncApply, type Task } from './sync.apply.ts';
import type { SyncMetrics } from './sync-metrics.ts';
import type { ActionKind } from './sync-world.ts';

interface Running {
  task: Task;
  stop: AbortController;
  done: Promise<void>;
}

export interface TaskQueueParts {
  applier: SyncApply;
  ledger: ModelLedger;
  meter: LoadMeter;
  /** How Triton ended after `sinceMs`, when a connection to it broke. */
  crashSince(sinceMs: number): Promise<Crash>;
  metrics: SyncMetrics;
  logger: Logger;
  now(): number;
  /** Called when a task has ended, however. */
  onEnd(): void;
}

const outcomeOf = (error: unknown): string =>
  error instanceof LoadFailure ? 'failed' : error instanceof TritonFault ? error.kind : errorCodeOf(error);

/** One queue of one task for each model: models do not wait for each other. */
export class TaskQueues {
  private readonly parts: TaskQueueParts;
  private readonly running = new Map<string, Running>();

  constructor(parts: TaskQueueParts) {
    this.parts = parts;
  }

  busy(): Map<string, ActionKind> {
    return new Map([...this.running].map(([name, { task }]) => [name, task.kind]));
  }

  begin(plain: Omit<Task, 'signal'>): void {
    const stop = new AbortController();
    setMaxListeners(0, stop.signal); // one for each file that is pulled
    const task: Task = { ...plain, signal: stop.signal };
    const done = this.perform(task).finally(() => {
      this.running.delete(task.name);
      this.parts.onEnd();
    });
    this.running.set(task.name, { task, stop, done });
  }

  /** Ends the tasks that `isVain` says nobody wants any more. */
  callOff(isVain: (task: Task) => boolean): void {
    for (const { task, stop } of this.running.values()) if (isVain(task)) stop.abort();
  }

  async stop(): Promise<void> {
    this.callOff(() => true);
    await Promise.all([...this.running.values()].map(({ done }) => done));
  }

  /** What it does, measured while a model comes in. */
  private async act(task: Task): Promise<void> {
    const { applier, ledger, meter } = this.parts;
    const { kind, name, model, signal } = task;
    const waits = model?.measure === true;
    ledger.began(task);
    if (kind === 'load' && ledger.crashes.isAlone(name)) await meter.begin(name, waits, signal);
    const facts: ModelFacts | undefined = await applier.apply(task);
    const memory = kind === 'warm' ? await meter.finish(name, waits, ledger.crashes.isAlone(name), signal) : undefined;
    ledger.succeeded(task, facts, memory);
  }

  private async perform(task: Task): Promise<void> {
    const { ledger, meter, metrics, logger, now, crashSince } = this.parts;
    const { kind, name: model } = task;
    const started = performance.now();
    const startedAtMs = now();
    let outcome = 'ok';
    try {
      await this.act(task);
    } catch (error) {
      outcome = outcomeOf(error);
      meter.forget(model);
      const lost = error instanceof TritonFault && error.kind === 'connection' && !task.signal.aborted;
      ledger.failed(task, error, now(), lost ? await crashSince(startedAtMs) : undefined);
      logger.warn('step failed', { step: kind, model, error });
    }
    const seconds = (performance.now() - started) / 1_000;
    logger.info('step ended', { step: kind, model, outcome, seconds });
    metrics.actions.add({ action: kind, outcome });
    metrics.actionSeconds.observe({ action: kind }, seconds);
    if (kind === 'load') metrics.loads.add({ outcome });
  }
}
