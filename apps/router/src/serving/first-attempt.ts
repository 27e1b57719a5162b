import { AppError, errorCodeOf } from '@perch/contracts';
import type { CompiledRollout } from '@perch/routing';
import { armLines, type Deployment } from './deployment.ts';
import { statusOf } from './error-reply.ts';
import type { EvidenceTrial, FirstOutcome } from './evidence-trial.ts';
import type { JudgedReply } from './judged-reply.ts';
import type { FallbackReason } from './trial-stats.ts';

/**
 * The first attempt of one live request of a rollout: how it ended is told once, whatever happens to the request
 * afterwards. An attempt is late when it takes more than half of the time that its client gives it: a candidate's is
 * then cut, so that stable has the other half, and on either arm it counts as failed, so that both are judged alike.
 */
export class FirstAttempt {
  readonly rollout: CompiledRollout;
  readonly judgesContract: boolean;
  readonly isCandidate: boolean;
  /** Stable may answer for the candidate. */
  replaceable: boolean;
  /** When an attempt of the candidate ends, by `performance.now()`; infinity where nothing would follow it. */
  cutAt = Number.POSITIVE_INFINITY;
  /** A copy of this request goes to the candidate behind the reply: its body must stay as it is. */
  shadowed = false;
  /** Stable's own answer, kept for the comparison of a shadowed request. */
  reply: JudgedReply | undefined;
  outcome: FirstOutcome | undefined;
  /** The model has answered: what goes wrong from here on is not the client's fault, whatever the module calls it. */
  modelAnswered = false;
  /** Why stable is to answer for the candidate; undefined: it is not, or no server took the request. */
  fallback: FallbackReason | undefined;
  private readonly trial: EvidenceTrial;
  private readonly judgesLate: boolean;
  private readonly halfMs: number;
  private begunAt: number | undefined;
  private broken: boolean | undefined;
  private flags: Set<string> | undefined;

  /** `leftMs`: what the client gives it. `judgesLate`: half of it is enough, so that stable could have the other half. */
  constructor(
    rollout: CompiledRollout,
    trial: EvidenceTrial,
    leftMs: number,
    { replaceable, judgesLate }: { replaceable: boolean; judgesLate: boolean },
  ) {
    this.rollout = rollout;
    this.trial = trial;
    this.halfMs = leftMs / 2;
    this.replaceable = replaceable;
    this.judgesLate = judgesLate;
    this.isCandidate = trial.side === 'candidate';
    this.judgesContract = rollout.spec.metrics.includes('contract');
  }

  /** Another attempt, or a copy, still needs the request's body. */
  get keepsBody(): boolean {
    return this.shadowed || this.outcome !== undefined;
  }

  /** Header lines of a reply by this arm. */
  linesOf({ target, replyLines }: Deployment): string {
    return this.answersForCandidate(target.deployment)
      ? armLines(String(target.version), 'stable; fallback')
      : replyLines;
  }

  /** Whether a reply by this deployment is stable's for the candidate. */
  answersForCandidate(deployment: string | undefined): boolean {
    return this.isCandidate && deployment === this.rollout.stable.deployment;
  }

  isLate(durationMs: number): boolean {
    return this.judgesLate && durationMs > this.halfMs;
  }

  /** Ends the candidate's attempt at half of the time. */
  cut(): void {
    this.cutAt = this.trial.startedAt + this.halfMs;
  }

  /** Milliseconds that are left to the attempt, of those that the request has. Throws `timeout` when none are. */
  remainingMs(now: number, leftMs: number): number {
    const left = Math.min(leftMs, this.cutAt - now);
    if (left <= 0) throw new AppError('timeout', 'the candidate gave no answer in half of the time');
    return left;
  }

  /** Its reply is on its way, event by event: nobody can replace it, and its time is the time to this first one. */
  begun(now: number): void {
    this.replaceable = false;
    this.cutAt = Number.POSITIVE_INFINITY;
    this.begunAt = now;
  }

  /** A flag counts once a request, and only while its first attempt runs. */
  flag(name: string): void {
    if (this.outcome || !this.rollout.spec.metrics.includes(name)) return;
    this.flags ??= new Set();
    this.flags.add(name);
  }

  /** What was found when the attempt's reply was held against its contract. */
  judged(broken: boolean): void {
    if (!this.outcome) this.broken = broken;
  }

  /** True: it was this attempt that answered. */
  answered(now: number): boolean {
    const isFirst = !this.outcome;
    const at = this.begunAt ?? now;
    this.end(this.isLate(at - this.trial.startedAt) ? 'failed' : 'answered', at);
    return isFirst;
  }

  /** `error` as the client would hear it. True: it is the arm's, not the client's. */
  failed(error: unknown, now: number): boolean {
    const code = errorCodeOf(error);
    const isArms = code !== 'cancelled' && (this.modelAnswered || statusOf[code] >= 500);
    this.end(code === 'cancelled' ? 'left' : isArms ? 'failed' : 'refused', now);
    return isArms;
  }

  /** No server of its arm took it: from here on others answer. */
  passedOn(error: unknown, now: number): void {
    this.failed(error, now);
    this.cutAt = Number.POSITIVE_INFINITY;
  }

  left(now: number): void {
    this.end('left', now);
  }

  /** Stable is to answer from now on. */
  fallsBack(reason: FallbackReason): void {
    this.fallback = reason;
    this.modelAnswered = false;
    this.cutAt = Number.POSITIVE_INFINITY;
  }

  /** Stable answered in the end. */
  fellBack(): void {
    this.trial.fellBack();
  }

  private end(outcome: FirstOutcome['outcome'], now: number): void {
    if (this.outcome) return;
    const ended: FirstOutcome = { outcome, durationMs: now - this.trial.startedAt };
    if (outcome === 'answered' && this.broken !== undefined) ended.broken = this.broken;
    if (this.flags) ended.flags = this.flags;
    this.outcome = ended;
    this.trial.firstOutcome(ended);
  }
}
