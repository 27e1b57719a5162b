import { type BatchPolicy, type Pending, planBatch } from './batch.plan.ts';

export interface QueuedWork extends Pending {
  /** Not computed after this time (same clock as `now`); undefined: waits for ever. */
  expiresAtMs: number | undefined;
}

export interface RequestQueueOptions<W extends QueuedWork, Instance> {
  policy: BatchPolicy;
  instances: readonly Instance[];
  /** Requests beyond this many waiting ones are refused; 0: no limit. */
  maxQueued: number;
  /** Computes a batch; never rejects. */
  execute: (instance: Instance, batch: W[]) => Promise<void>;
  onExpired: (work: W) => void;
  now?: () => number;
}

/** Requests on their way to the instances of one version, in order. */
export class RequestQueue<W extends QueuedWork, Instance> {
  private readonly waiting: W[] = [];
  private readonly idle: Instance[];
  private readonly options: RequestQueueOptions<W, Instance>;
  private readonly now: () => number;
  private timer: NodeJS.Timeout | undefined;
  private running = 0;
  /** Most models have no time limit in the queue, and then nobody looks for one. */
  private expires = false;
  private drained: (() => void) | undefined;

  constructor(options: RequestQueueOptions<W, Instance>) {
    this.options = options;
    this.now = options.now ?? (() => performance.now());
    this.idle = [...options.instances];
  }

  get length(): number {
    return this.waiting.length;
  }

  /** False when the queue is full; the work was then not taken. */
  push(work: W): boolean {
    const { maxQueued } = this.options;
    if (maxQueued > 0 && this.waiting.length >= maxQueued) return false;
    this.waiting.push(work);
    this.expires ||= work.expiresAtMs !== undefined;
    this.pump();
    return true;
  }

  /** Resolves when nothing waits and nothing runs. */
  async drain(): Promise<void> {
    if (this.waiting.length === 0 && this.running === 0) return;
    await new Promise<void>((resolve) => {
      this.drained = resolve;
    });
  }

  private expire(nowMs: number): void {
    if (!this.expires) return;
    for (let i = this.waiting.length - 1; i >= 0; i -= 1) {
      const work = this.waiting[i]!;
      if (work.expiresAtMs === undefined || work.expiresAtMs > nowMs) continue;
      this.waiting.splice(i, 1);
      this.options.onExpired(work);
    }
  }

  private pump(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const nowMs = this.now();
    this.expire(nowMs);
    while (this.idle.length > 0 && this.waiting.length > 0) {
      const plan = planBatch(this.waiting, this.options.policy, nowMs);
      if ('waitMs' in plan) {
        this.lookAgain(plan.waitMs, nowMs);
        return;
      }
      this.start(this.idle.shift()!, this.waiting.splice(0, plan.take));
    }
    this.lookAgain(Number.POSITIVE_INFINITY, nowMs);
    if (this.waiting.length === 0 && this.running === 0) this.drained?.();
  }

  private lookAgain(waitMs: number, nowMs: number): void {
    let soonest = waitMs;
    if (this.expires)
      for (const { expiresAtMs } of this.waiting)
        if (expiresAtMs !== undefined) soonest = Math.min(soonest, expiresAtMs - nowMs);
    if (Number.isFinite(soonest)) this.timer = setTimeout(() => this.pump(), Math.max(0, soonest));
  }

  private start(instance: Instance, batch: W[]): void {
    this.running += 1;
    void this.options.execute(instance, batch).finally(() => {
      this.running -= 1;
      this.idle.push(instance);
      this.pump();
    });
  }
}
