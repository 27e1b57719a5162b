import { bucketCount, bucketsOf } from '@perch/contracts';
import { BucketBook } from './buckets.decide.ts';
import type { EvidenceSum } from './rollback-evidence.decide.ts';
import type { Sample } from './simulate-traffic.ts';

export interface Counts {
  n: number;
  x: number;
}

/** Turns samples into units, as the merging of evidence does: requests, or buckets under a sticky key. */
export interface Units {
  /** A new epoch with this share. */
  begin(share: number): void;
  /** Counts a sample, and adds its events to the evidence of each metric. True: some event counted. */
  take(sample: Sample, evidence: readonly EvidenceSum[]): boolean;
  /** Of the current epoch. */
  stable: Counts[];
  candidate: Counts[];
  /** Stable's, of all epochs. */
  wholeStable: Counts[];
  /** Units with an event on the candidate, in all epochs. */
  candidateEvents: number;
}

const zeros = (metrics: number): Counts[] => Array.from({ length: metrics }, () => ({ n: 0, x: 0 }));

export class RequestUnits implements Units {
  stable: Counts[];
  candidate: Counts[];
  wholeStable: Counts[];
  candidateEvents = 0;
  private share = 0;

  constructor(private readonly metrics: number) {
    this.stable = zeros(metrics);
    this.candidate = zeros(metrics);
    this.wholeStable = zeros(metrics);
  }

  begin(share: number): void {
    this.share = share;
    this.stable = zeros(this.metrics);
    this.candidate = zeros(this.metrics);
  }

  take({ stable, candidate, split }: Sample, evidence: readonly EvidenceSum[]): boolean {
    let any = false;
    for (let metric = 0; metric < this.metrics; metric += 1) {
      add(this.stable[metric]!, stable.n, stable.x[metric]!);
      add(this.wholeStable[metric]!, stable.n, stable.x[metric]!);
      add(this.candidate[metric]!, candidate.n, candidate.x[metric]!);
      const onStable = (split?.stable ?? stable.x)[metric]!;
      const onCandidate = (split?.candidate ?? candidate.x)[metric]!;
      if (onStable === 0 && onCandidate === 0) continue;
      evidence[metric]!.add(this.share, onStable, onCandidate);
      this.candidateEvents += onCandidate;
      any = true;
    }
    return any;
  }
}

const add = (counts: Counts, n: number, x: number) => {
  counts.n += n;
  counts.x += x;
};

/** One metric of users: who was seen in the epoch, who had an event in it, and who ever counted for the rollback rule. */
class MetricBuckets {
  readonly book = new BucketBook();
  hit = new Uint8Array(bucketCount);
  everHit = new Uint8Array(bucketCount);
}

export class BucketUnits implements Units {
  stable: Counts[];
  candidate: Counts[];
  wholeStable: Counts[];
  candidateEvents = 0;
  private owned = 0;
  private seen = new Uint8Array(bucketCount);
  private readonly everSeen = new Uint8Array(bucketCount);
  private readonly withEvent = new Set<number>();
  private readonly buckets: MetricBuckets[];

  constructor(private readonly metrics: number) {
    this.buckets = Array.from({ length: metrics }, () => new MetricBuckets());
    this.stable = zeros(metrics);
    this.candidate = zeros(metrics);
    this.wholeStable = zeros(metrics);
  }

  begin(share: number): void {
    this.owned = bucketsOf(share);
    this.stable = zeros(this.metrics);
    this.candidate = zeros(this.metrics);
    this.seen.fill(0);
    for (const { hit } of this.buckets) hit.fill(0);
  }

  take({ users }: Sample, evidence: readonly EvidenceSum[]): boolean {
    const { buckets, outcomes } = users!;
    let any = false;
    for (let at = 0; at < buckets.length; at += 1) {
      const bucket = buckets[at]!;
      this.see(bucket);
      const metric = outcomes[at]!;
      if (metric >= 0 && this.hit(bucket, metric, evidence[metric]!)) any = true;
    }
    return any;
  }

  private see(bucket: number): void {
    if (this.seen[bucket]) return;
    this.seen[bucket] = 1;
    const isCandidate = bucket < this.owned;
    for (const counts of isCandidate ? this.candidate : this.stable) counts.n += 1;
    if (isCandidate || this.everSeen[bucket]) return;
    this.everSeen[bucket] = 1;
    for (const counts of this.wholeStable) counts.n += 1;
  }

  private hit(bucket: number, metric: number, evidence: EvidenceSum): boolean {
    const { hit, everHit, book } = this.buckets[metric]!;
    if (hit[bucket]) return false;
    hit[bucket] = 1;
    const isCandidate = bucket < this.owned;
    (isCandidate ? this.candidate : this.stable)[metric]!.x += 1;
    if (!isCandidate && !everHit[bucket]) {
      everHit[bucket] = 1;
      this.wholeStable[metric]!.x += 1;
    }
    const share = book.count(bucket, this.owned);
    if (share === null) return false;
    evidence.add(share, isCandidate ? 0 : 1, isCandidate ? 1 : 0);
    if (isCandidate) this.withEvent.add(bucket);
    this.candidateEvents = this.withEvent.size;
    return true;
  }
}
