import { durationBuckets } from '@perch/platform';

export const stages = ['preprocess', 'infer', 'postprocess'] as const;
export type Stage = (typeof stages)[number];

const bucketsMs = durationBuckets.map((seconds) => seconds * 1_000);

/** Counts of one (endpoint, version, arm), kept as bare numbers: a metrics library would cost more than the routing. */
export class ArmStats {
  readonly labels: Readonly<Record<'endpoint' | 'version' | 'arm', string>>;
  readonly outcomes = new Map<string, number>();
  /** Made when the first request comes: most arms of a big installation are idle. */
  buckets: Float64Array | undefined;
  readonly stageMs = [0, 0, 0];
  sumMs = 0;

  constructor(endpoint: string, version: string, arm: string) {
    this.labels = { endpoint, version, arm };
  }

  count(outcome: string, durationMs: number): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    let bucket = 0;
    while (bucket < bucketsMs.length && durationMs > bucketsMs[bucket]!) bucket += 1;
    this.buckets ??= new Float64Array(bucketsMs.length + 1);
    this.buckets[bucket]! += 1;
    this.sumMs += durationMs;
  }
}
