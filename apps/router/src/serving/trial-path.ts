import { errorCodeOf } from '@perch/contracts';
import type { HttpReply } from '../http1/index.ts';
import type { Call } from './call.ts';
import { contractFault } from './contract.decide.ts';
import type { Dispatch } from './dispatch.ts';
import type { EvidenceBook } from './evidence-book.ts';
import { FirstAttempt } from './first-attempt.ts';
import type { JudgedReply } from './judged-reply.ts';
import { RetryBudget } from './retry-budget.ts';
import type { RouterStats } from './router-stats.ts';
import type { Shadow, ShadowedPath } from './shadow.ts';
import type { FallbackReason, TrialStats } from './trial-stats.ts';
import { UsualTime } from './usual-time.ts';

/** What there is of stable to spare: requests that it may answer for the candidate, and the time it needs for one. */
class Spare {
  readonly budget: RetryBudget;
  readonly usual = new UsualTime();

  constructor(budgetShare: number) {
    this.budget = new RetryBudget(budgetShare);
  }
}

/** One way of answering a request, from its body to the reply; asks `replaces` about what a model answered. */
export interface TriedPath {
  attempt(call: Call): Promise<HttpReply>;
}

/**
 * Live requests of endpoints with a rollout: tells how each one's first attempt ended, lets stable answer where the
 * candidate failed, was late or broke its contract, and sends copies of stable's requests behind their replies.
 */
export class TrialPath {
  private readonly dispatch: Dispatch;
  private readonly evidence: EvidenceBook;
  private readonly shadow: Shadow;
  private readonly stats: TrialStats;
  private readonly failures: RouterStats;
  /** By endpoint; those without a rollout are let go when the table changes. */
  private readonly spares = new Map<string, Spare>();

  constructor(dispatch: Dispatch, evidence: EvidenceBook, shadow: Shadow, stats: TrialStats, failures: RouterStats) {
    this.dispatch = dispatch;
    this.evidence = evidence;
    this.shadow = shadow;
    this.stats = stats;
    this.failures = failures;
    dispatch.onSwap(() => this.forgetOver());
  }

  /** Answers a request that was put on a side of a rollout. Throws what the client is to be told. */
  async answer(call: Call, path: TriedPath): Promise<HttpReply> {
    const first = this.begin(call);
    if (!first) return path.attempt(call);
    let reply: HttpReply;
    try {
      reply = await path.attempt(call);
    } catch (error) {
      const now = performance.now();
      if (call.exchange.cancelled) first.left(now);
      const isArms = first.failed(error, now);
      const reason = errorCodeOf(error) === 'timeout' ? 'late' : 'failed';
      if (!isArms || !this.fallBack(call, first, reason)) throw error;
      this.failures.logFault(error, call);
      reply = await path.attempt(call);
    }
    if (first.answered(performance.now()) && !first.isCandidate)
      this.spares.get(call.endpoint)?.usual.add(first.outcome!.durationMs);
    if (first.answersForCandidate(call.arm.target.deployment)) {
      first.fellBack();
      this.stats.countFallback(call.endpoint, first.rollout.candidate.version, first.fallback ?? 'unready');
    } else if (call.trial && call.arm.target.deployment === first.rollout[call.trial.side].deployment)
      reply.headerLines += call.trial.feedbackLine(call.requestId);
    return reply;
  }

  /**
   * Judges what a model answered to a request on trial. True: stable is to answer in its place, and the call is on it
   * already. What came of the first attempt is told once; a candidate that answers later is watched all the same.
   */
  replaces(call: Call, first: FirstAttempt, reply: JudgedReply): boolean {
    first.modelAnswered = true;
    const onCandidate = call.arm.target.deployment === first.rollout.candidate.deployment;
    if (first.outcome && !onCandidate) return false;
    if (first.shadowed) first.reply = reply;
    if (!first.judgesContract) return false;
    const outputs = reply.outputs();
    const fault = outputs ? contractFault(outputs, call.arm.target.outputs, reply.asked) : 'unreadable';
    first.judged(fault !== undefined);
    if (!fault) return false;
    this.stats.countFault(call.arm.stats.labels, fault);
    if (!onCandidate) return false;
    first.answered(performance.now());
    return this.fallBack(call, first, 'contract');
  }

  /** The reply is on its way. */
  replied(call: Call, first: FirstAttempt, path: ShadowedPath): void {
    if (first.shadowed) this.shadow.send(call, first, path);
  }

  /** Undefined where nobody counts: then nobody is asked twice either. */
  private begin(call: Call): FirstAttempt | undefined {
    const now = performance.now();
    const trial = this.evidence.begin(call, now);
    if (!trial) return undefined;
    const { rollout, route } = call.route;
    const { fallback } = rollout!.spec;
    const leftMs = call.deadlineAt - now;
    const spare = fallback && route.idempotent ? this.spareOf(call.endpoint, fallback.budgetPercent) : undefined;
    // what stable cannot answer in the other half is not taken from the candidate
    const judgesLate = spare !== undefined && spare.usual.mostMs <= leftMs / 2;
    const first = new FirstAttempt(rollout!, trial, leftMs, { replaceable: spare !== undefined, judgesLate });
    spare?.budget.countRequest(now);
    if (judgesLate && first.isCandidate && spare.budget.hasRoom(now)) first.cut();
    call.trial = trial;
    call.first = first;
    first.shadowed = !first.isCandidate && !trial.ended && this.shadow.wants(call.route, Math.random());
    return first;
  }

  /** Puts the call on stable where that may be, within time and budget. */
  private fallBack(call: Call, first: FirstAttempt, reason: FallbackReason): boolean {
    const stable = this.stableFor(call, first);
    const now = performance.now();
    if (!stable || now >= call.deadlineAt) return false;
    const { spec, candidate } = first.rollout;
    if (!this.spareOf(call.endpoint, spec.fallback!.budgetPercent).budget.take(now)) {
      this.stats.countRefused(call.endpoint, candidate.version, reason);
      return false;
    }
    first.fallsBack(reason);
    call.restartOn(stable, candidate.deployment);
    return true;
  }

  /** Stable's deployment, where it may run what the candidate may have run already. */
  private stableFor({ arm, exchange }: Call, { rollout, replaceable, isCandidate }: FirstAttempt) {
    const onCandidate = arm?.target.deployment === rollout.candidate.deployment;
    if (!isCandidate || !onCandidate || !replaceable || exchange.cancelled) return undefined;
    return this.dispatch.table().deployments.get(rollout.stable.deployment);
  }

  private spareOf(endpoint: string, percent: number): Spare {
    let spare = this.spares.get(endpoint);
    if (spare?.budget.share !== percent / 100) {
      spare = new Spare(percent / 100);
      this.spares.set(endpoint, spare);
    }
    return spare;
  }

  private forgetOver(): void {
    const { endpoints } = this.dispatch.table();
    for (const endpoint of this.spares.keys()) if (!endpoints.get(endpoint)?.rollout) this.spares.delete(endpoint);
  }
}
