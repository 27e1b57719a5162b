import type { Duration, ModelStatistics } from '@perch/triton/control';

const zero = (): Duration => ({ count: 0, ns: 0 });
const add = (duration: Duration, ms: number, times = 1): void => {
  duration.count += times;
  duration.ns += Math.round(ms * 1e6) * times;
};

export const failureReasons = ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'] as const;
export type FailureReason = (typeof failureReasons)[number];

/** How long the steps of one execution took, in milliseconds. */
export interface BatchTimes {
  inputMs: number;
  inferMs: number;
  outputMs: number;
}

/** Counters of one loaded version; a version that is loaded anew begins at 0. */
export class VersionStatistics {
  readonly success = zero();
  readonly fail = zero();
  readonly queue = zero();
  readonly computeInput = zero();
  readonly computeInfer = zero();
  readonly computeOutput = zero();
  readonly batches = new Map<number, { input: Duration; infer: Duration; output: Duration }>();
  inferenceCount = 0;
  executionCount = 0;
  lastInference = 0;

  /** One execution of `rows` rows that answered `requests` requests. */
  executed(rows: number, requests: number, times: BatchTimes, now: number): void {
    this.executionCount += 1;
    this.inferenceCount += rows;
    this.lastInference = now;
    const batch = this.batches.get(rows) ?? { input: zero(), infer: zero(), output: zero() };
    this.batches.set(rows, batch);
    add(batch.input, times.inputMs);
    add(batch.infer, times.inferMs);
    add(batch.output, times.outputMs);
    add(this.computeInput, times.inputMs, requests);
    add(this.computeInfer, times.inferMs, requests);
    add(this.computeOutput, times.outputMs, requests);
  }

  succeeded(totalMs: number, queuedMs: number): void {
    add(this.success, totalMs);
    add(this.queue, queuedMs);
  }

  failed(totalMs: number): void {
    add(this.fail, totalMs);
  }

  snapshot(name: string, version: string): ModelStatistics {
    const sizes = [...this.batches].sort(([a], [b]) => a - b);
    return {
      name,
      version,
      lastInference: this.lastInference,
      inferenceCount: this.inferenceCount,
      executionCount: this.executionCount,
      success: this.success,
      fail: this.fail,
      queue: this.queue,
      computeInput: this.computeInput,
      computeInfer: this.computeInfer,
      computeOutput: this.computeOutput,
      batches: sizes.map(([batchSize, { input, infer, output }]) => ({
        batchSize,
        computeInput: input,
        computeInfer: infer,
        computeOutput: output,
      })),
      memory: [],
    };
  }
}
