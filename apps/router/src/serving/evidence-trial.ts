import { signFeedbackToken } from '@perch/contracts';
import type { Side } from './call.ts';
import type { Cohort } from './evidence-cohorts.ts';
import type { EvidenceEpoch } from './evidence-epoch.ts';

/**
 * How the first attempt of a request ended: `answered` by its arm, `refused` for the client's own fault (4xx), `failed`
 * (5xx, transport, timeout, the arm's own limiter), or the client `left` before.
 */
export interface FirstOutcome {
  outcome: 'answered' | 'refused' | 'failed' | 'left';
  /** Since the request was complete. */
  durationMs: number;
  /** Whether the reply broke its contract; left out: nobody checked. */
  broken?: boolean;
  /** Flags that processing raised. */
  flags?: Iterable<string>;
}

/** One request on trial: says once how its first attempt ended, whatever answers the client in the end. */
export class EvidenceTrial {
  readonly side: Side;
  /** -1: the route is not sticky. */
  readonly bucket: number;
  /** `performance.now()` when it was put on its arm. */
  readonly startedAt: number;
  /** Undefined: it lacks the sticky key, so nobody judges it (`keyless`). */
  readonly cohort: Cohort | undefined;
  judged = 0;
  events = 0;
  ended = false;
  /** Told of: as ended, or as on its way. */
  told = false;
  private readonly epoch: EvidenceEpoch;

  constructor(epoch: EvidenceEpoch, side: Side, bucket: number, startedAt: number, cohort: Cohort | undefined) {
    this.epoch = epoch;
    this.side = side;
    this.bucket = bucket;
    this.startedAt = startedAt;
    this.cohort = cohort;
  }

  get keyless(): boolean {
    return this.cohort === undefined;
  }

  /** Counts it; the second time nothing. */
  firstOutcome(outcome: FirstOutcome): void {
    if (!this.ended && this.cohort) this.epoch.end(this, this.cohort, outcome);
  }

  /** Stable answered in the end. */
  fellBack(): void {
    this.epoch.fellBack();
  }

  /**
   * The header line of a reply by its own arm, which brings feedback on the prediction back to it. Empty where no metric
   * waits for feedback.
   */
  feedbackLine(requestId: string): string {
    const { key, spec } = this.epoch;
    if (!key || !this.cohort) return '';
    const iat = Math.floor(Date.now() / 1_000);
    const claims = { r: spec.id, e: spec.epoch, a: this.side, b: this.bucket, q: requestId, iat };
    return `x-perch-feedback-token: ${signFeedbackToken(claims, key)}\r\n`;
  }
}
