import { type ErrorCode, latencyBoundsMs } from '@perch/contracts';
import { durationBuckets } from '@perch/platform';
import { statusOf } from './error-reply.ts';

export const stages = ['preprocess', 'infer', 'postprocess'] as const;
export type Stage = (typeof stages)[number];

const bucketsMs = durationBuckets.map((seconds) => seconds * 1_000);

function bucketOf(durationMs: number): number {
  let bucket = 0;
  while (bucket < bucketsMs.length && durationMs > bucketsMs[bucket]!) bucket += 1;
  return bucket;
}

/** Place of a latency among `latencyBoundsMs`, by its whole milliseconds: all bounds up to a second are whole ones. */
const tabledMs = 1_000;
const places = Uint8Array.from({ length: tabledMs + 1 }, (_, ms) => latencyBoundsMs.findIndex((bound) => ms <= bound));
export function latencyPlace(durationMs: number): number {
  if (durationMs <= tabledMs) return places[Math.ceil(durationMs)]!;
  let place = places[tabledMs]!;
  while (place < latencyBoundsMs.length && durationMs > latencyBoundsMs[place]!) place += 1;
  return place;
}

/** What the client did wrong, and what it did not wait for, is no error of the version. */
const isError = (outcome: string): boolean => (statusOf[outcome as ErrorCode] ?? 0) >= 500;

/** Counts of one (endpoint, version, arm), kept as bare numbers: a metrics library would cost more than the routing. */
export class ArmStats {
  readonly labels: Readonly<Record<'endpoint' | 'version' | 'arm', string>>;
  /** Of its endpoint and version: arms of one version have one. */
  readonly versionKey: string;
  /** By error code; what went well is in `ok`. */
  readonly failures = new Map<string, number>();
  /** Made when the first request comes: most arms of a big installation are idle. */
  buckets: Float64Array | undefined;
  latency: Float64Array | undefined;
  readonly stageMs = [0, 0, 0];
  /** Of replies that came event by event: time to the first one. */
  firstEvents: Float64Array | undefined;
  firstEventSumMs = 0;
  sumMs = 0;
  ok = 0;
  requests = 0;
  errors = 0;
  retries = 0;

  constructor(endpoint: string, version: string, arm: string) {
    this.labels = { endpoint, version, arm };
    this.versionKey = `${endpoint} ${version}`;
  }

  /** `outcome`: `ok` or an error code. */
  count(outcome: string, durationMs: number): void {
    this.requests += 1;
    if (outcome === 'ok') this.ok += 1;
    else this.countFailure(outcome);
    this.buckets ??= new Float64Array(bucketsMs.length + 1);
    this.buckets[bucketOf(durationMs)]! += 1;
    this.latency ??= new Float64Array(latencyBoundsMs.length + 1);
    this.latency[latencyPlace(durationMs)]! += 1;
    this.sumMs += durationMs;
  }

  countFirstEvent(durationMs: number): void {
    this.firstEvents ??= new Float64Array(bucketsMs.length + 1);
    this.firstEvents[bucketOf(durationMs)]! += 1;
    this.firstEventSumMs += durationMs;
  }

  private countFailure(outcome: string): void {
    this.failures.set(outcome, (this.failures.get(outcome) ?? 0) + 1);
    if (isError(outcome)) this.errors += 1;
  }
}
