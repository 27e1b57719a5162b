import { type ArmEvidence, bucketCount, type MetricEvidence } from '@perch/contracts';
import type { Judgement } from './evidence-rules.ts';

/** Buckets that were seen; knows whether it was told as it is. */
export class BucketBits {
  private readonly bytes = new Uint8Array(bucketCount / 8);
  private told = true;

  add(bucket: number): void {
    const mask = 1 << (bucket & 7);
    const place = bucket >> 3;
    if (this.bytes[place]! & mask) return;
    this.bytes[place]! |= mask;
    this.told = false;
  }

  /** Undefined: nothing new since it was told last. */
  tell(): string | undefined {
    if (this.told) return undefined;
    this.told = true;
    let length = this.bytes.length;
    while (length > 0 && this.bytes[length - 1] === 0) length -= 1;
    return Buffer.from(this.bytes.buffer, 0, length).toString('base64');
  }
}

/** Counts of one arm, one number a metric; under a sticky key also the sets of buckets. */
export class EvidenceTally {
  private readonly n: number[];
  private readonly x: number[];
  private readonly seen: BucketBits[] = [];
  private readonly hit: BucketBits[] = [];
  private readonly metrics: readonly string[];

  constructor(metrics: readonly string[], sticky: boolean) {
    this.metrics = metrics;
    this.n = metrics.map(() => 0);
    this.x = metrics.map(() => 0);
    if (!sticky) return;
    this.seen = metrics.map(() => new BucketBits());
    this.hit = metrics.map(() => new BucketBits());
  }

  add({ bucket, judged, events }: Judgement & { bucket: number }): void {
    for (let metric = 0; judged >> metric > 0; metric += 1) {
      if (!((judged >> metric) & 1)) continue;
      this.n[metric]! += 1;
      if (bucket >= 0) this.seen[metric]?.add(bucket);
      if (!((events >> metric) & 1)) continue;
      this.x[metric]! += 1;
      if (bucket >= 0) this.hit[metric]?.add(bucket);
    }
  }

  tell(): ArmEvidence['ended'] {
    const told: ArmEvidence['ended'] = {};
    this.metrics.forEach((metric, place) => {
      const seen = this.seen[place]?.tell();
      const hit = this.hit[place]?.tell();
      const counts: MetricEvidence = { n: this.n[place]!, x: this.x[place]! };
      told[metric] = { ...counts, ...(seen === undefined ? {} : { seen }), ...(hit === undefined ? {} : { hit }) };
    });
    return told;
  }
}
