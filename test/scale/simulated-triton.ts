import type { ObservedModel, ObservedState } from '@perch/contracts';
import type { Desired, SyncSnapshot } from '@perch/sync';

export interface TritonHabits {
  loadMs: () => number;
  loadsAtOnce: number;
  /** Times of the other steps: fetching and laying out the files, the first request, unloading. */
  stepMs: number;
}

interface Held {
  digest: string;
  state: ObservedState;
  since: string;
}

const facts: SyncSnapshot['triton'] = { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 0 };

/**
 * A Triton and what keeps it in step, in memory: each model goes through the steps one after the other (pulling,
 * staging, loading, warming, ready; unloading, gone), a few load at a time, what is not desired goes only where removals
 * are allowed, and what changed its mind half-way finishes the step it is in first. Stands where the agent has its
 * `SyncReconciler`; the loops around it are the agent's own.
 */
export class SimulatedTriton {
  snapshot: SyncSnapshot;
  private desired: Desired = { models: {}, removalsAllowed: false };
  private readonly held = new Map<string, Held>();
  private readonly waiting: string[] = [];
  private readonly listeners: (() => void)[] = [];
  private readonly timers = new Set<NodeJS.Timeout>();
  private loading = 0;
  private changed: NodeJS.Immediate | undefined;
  loads = 0;
  unloads = 0;

  constructor(private readonly habits: TritonHabits) {
    this.snapshot = this.look();
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  setDesired(desired: Desired): void {
    this.desired = desired;
    for (const name of Object.keys(desired.models)) if (!this.held.has(name)) this.begin(name);
    for (const [name, { state }] of this.held) if (state === 'ready') this.settle(name);
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer);
  }

  private begin(name: string): void {
    this.set(name, 'pulling');
    this.after(this.habits.stepMs, () => {
      this.set(name, 'staging');
      this.after(this.habits.stepMs, () => {
        this.waiting.push(name);
        this.loadNext();
      });
    });
  }

  private loadNext(): void {
    while (this.loading < this.habits.loadsAtOnce) {
      const name = this.waiting.shift();
      if (name === undefined) return;
      this.loading += 1;
      this.loads += 1;
      this.set(name, 'loading');
      this.after(this.habits.loadMs(), () => {
        this.loading -= 1;
        this.set(name, 'warming');
        this.after(this.habits.stepMs, () => {
          this.set(name, 'ready');
          this.settle(name);
        });
        this.loadNext();
      });
    }
  }

  /** What is ready and no longer wanted goes; a model of another digest under the same name is loaded in its place. */
  private settle(name: string): void {
    const wanted = this.desired.models[name];
    const held = this.held.get(name)!;
    if (wanted?.digest === held.digest || (wanted === undefined && !this.desired.removalsAllowed)) return;
    this.unloads += 1;
    this.set(name, 'unloading');
    this.after(this.habits.stepMs, () => {
      this.held.delete(name);
      this.tell();
      if (this.desired.models[name]) this.begin(name);
    });
  }

  private set(name: string, state: ObservedState): void {
    const digest = this.held.get(name)?.digest ?? this.desired.models[name]?.digest ?? '';
    this.held.set(name, { digest, state, since: new Date().toISOString() });
    this.tell();
  }

  private after(ms: number, step: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      step();
    }, ms);
    this.timers.add(timer);
  }

  private tell(): void {
    this.changed ??= setImmediate(() => {
      this.changed = undefined;
      this.snapshot = this.look();
      for (const listener of this.listeners) listener();
    });
  }

  private look(): SyncSnapshot {
    const models = Object.fromEntries([...this.held].map(([name, { state, since }]) => [name, seen(state, since)]));
    const present = [...this.held.keys()].sort();
    const orphans = present.filter((name) => !(name in this.desired.models));
    const inStep = orphans.length === 0 && [...this.held.values()].every(({ state }) => state === 'ready');
    return { triton: facts, models, present, orphans, inStep };
  }
}

const seen = (state: ObservedState, since: string): ObservedModel => ({
  state,
  reason: null,
  since,
  ...(state === 'ready'
    ? {
        inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
        outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 2] }],
        maxBatchSize: 32,
        memory: { ramBytes: 2 ** 20, gpuBytes: {} },
      }
    : {}),
});
