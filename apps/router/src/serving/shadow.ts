import { type Comparison, errorCodeOf } from '@perch/contracts';
import type { CompiledRoute } from '@perch/routing';
import type { Call } from './call.ts';
import { outputsAgree } from './comparison.decide.ts';
import { contractFault } from './contract.decide.ts';
import type { Deployment } from './deployment.ts';
import type { Dispatch } from './dispatch.ts';
import { statusOf } from './error-reply.ts';
import type { EvidenceBook } from './evidence-book.ts';
import type { FirstOutcome } from './evidence-trial.ts';
import type { FirstAttempt } from './first-attempt.ts';
import type { JudgedReply } from './judged-reply.ts';
import { ShadowCall } from './shadow-call.ts';
import type { ShadowOutcome, TrialStats } from './trial-stats.ts';

/** How a path sends a copy. Undefined: no server takes it. Throws what a client would have been told. */
export interface ShadowedPath {
  copy(call: ShadowCall): Promise<JudgedReply | undefined>;
}

/** Copies in hand at a time, of one endpoint and of all, and the bytes they may hold. */
const mostEach = 4;
const most = 16;
const mostBytes = 32 * 1_048_576;
/** Our own work on copies (preprocessing, comparing) takes at most this part of the time: after each we rest. */
const mostOfTime = 0.05;

interface Copy {
  call: ShadowCall;
  route: CompiledRoute;
  first: FirstAttempt;
  path: ShadowedPath;
}

/**
 * Sends copies of stable's requests to the candidate, after their replies, and compares what both answered. It takes
 * what room is left and drops a copy otherwise; a live request never waits for it.
 */
export class Shadow {
  inFlight = 0;
  private heldBytes = 0;
  private readonly each = new Map<string, number>();
  private restUntil = 0;
  private readonly dispatch: Dispatch;
  private readonly evidence: EvidenceBook;
  private readonly stats: TrialStats;

  constructor(dispatch: Dispatch, evidence: EvidenceBook, stats: TrialStats) {
    this.dispatch = dispatch;
    this.evidence = evidence;
    this.stats = stats;
  }

  /** Whether a copy of a request of stable's is wanted; `draw` is uniform in [0, 1). A second run must do no harm. */
  wants({ rollout, route }: CompiledRoute, draw: number): boolean {
    const shadow = rollout?.spec.shadow;
    return shadow != null && draw < shadow.sample && route.idempotent;
  }

  /** Takes a request whose reply is on its way. Never throws, never waits. */
  send(call: Call, first: FirstAttempt, path: ShadowedPath): void {
    const { outcome, reply, rollout } = first;
    // what the client did wrong, or did not wait for, tells nothing of the candidate
    if (!outcome || outcome.outcome === 'left' || outcome.outcome === 'refused') return;
    const { route, endpoint } = call;
    const now = performance.now();
    const arm = this.dispatch.table().deployments.get(rollout.candidate.deployment);
    let bytes = reply?.sizeBytes ?? 0;
    for (const piece of call.exchange.body) bytes += piece.length;
    if (!arm || this.isBusy(endpoint, bytes, now)) {
      this.drop(route, now);
      return;
    }
    this.hold(endpoint, 1, bytes, arm);
    const copy = { call: new ShadowCall(call, arm, rollout.spec), route, first, path };
    setImmediate(() => {
      void this.run(copy)
        .catch(() => this.drop(route, performance.now()))
        .finally(() => this.hold(endpoint, -1, -bytes, arm));
    });
  }

  private isBusy(endpoint: string, bytes: number, now: number): boolean {
    const { inFlight, heldBytes, each, restUntil } = this;
    return (
      now < restUntil || inFlight >= most || heldBytes + bytes > mostBytes || (each.get(endpoint) ?? 0) >= mostEach
    );
  }

  /** Books room taken or given back; the candidate's deployment is in use meanwhile, so that nobody unloads it. */
  private hold(endpoint: string, by: 1 | -1, bytes: number, arm: Deployment): void {
    this.inFlight += by;
    this.heldBytes += bytes;
    arm.gauge.inFlight += by;
    const count = (this.each.get(endpoint) ?? 0) + by;
    if (count > 0) this.each.set(endpoint, count);
    else this.each.delete(endpoint);
  }

  private drop(route: CompiledRoute, now: number): void {
    this.evidence.pairDropped(route, now);
    this.stats.countShadow(route.name, route.rollout!.candidate.version, 'dropped');
  }

  private async run({ call, route, first, path }: Copy): Promise<void> {
    const startedAt = performance.now();
    let reply: JudgedReply | undefined;
    let outcome: FirstOutcome['outcome'] = 'answered';
    try {
      const sent = path.copy(call);
      this.rest(startedAt);
      reply = await sent;
      if (!reply) return this.drop(route, performance.now());
    } catch (error) {
      outcome = statusOf[errorCodeOf(error)] >= 500 ? 'failed' : 'refused';
    }
    const endedAt = performance.now();
    if (outcome === 'answered' && first.isLate(endedAt - startedAt)) outcome = 'failed';
    this.judge({ call, route, first, path }, { outcome, durationMs: endedAt - startedAt, flags: call.flags }, reply);
    this.rest(endedAt);
  }

  private judge({ call, route, first }: Copy, answer: FirstOutcome, reply: JudgedReply | undefined): void {
    const { spec } = first.rollout;
    if (reply && first.judgesContract) {
      const outputs = reply.outputs();
      answer.broken = !outputs || contractFault(outputs, call.arm.target.outputs, reply.asked) !== undefined;
    }
    const agree = agreement(first, answer, reply, spec.shadow!.compare);
    const stable = eventsOf(first.outcome!, spec.slowMs);
    const candidate = eventsOf(answer, spec.slowMs);
    const now = performance.now();
    if (!this.evidence.isLapsed(route, now))
      this.evidence.pair(route, { stable, candidate, ...(agree === undefined ? {} : { agree }) }, now);
    const shown: ShadowOutcome = agree === undefined ? 'uncompared' : agree ? 'agreed' : 'differed';
    this.stats.countShadow(route.name, call.version, shown);
  }

  /** Since `from` the thread was ours. */
  private rest(from: number): void {
    const now = performance.now();
    this.restUntil = Math.max(this.restUntil, now) + (now - from) * (1 / mostOfTime - 1);
  }
}

/** Names of the metrics whose event one side of a pair had. A timeout or failure is an `error` only. */
export function eventsOf({ outcome, durationMs, broken, flags = [] }: FirstOutcome, slowMs: number | null): string[] {
  if (outcome === 'failed') return ['error'];
  if (outcome !== 'answered') return [];
  const slow = slowMs !== null && durationMs > slowMs ? ['slow'] : [];
  return [...slow, ...(broken ? ['contract'] : []), ...flags];
}

/** Undefined where there are no two answers. A candidate that refuses what stable took does not agree. */
function agreement(
  first: FirstAttempt,
  answer: FirstOutcome,
  reply: JudgedReply | undefined,
  comparison: Comparison,
): boolean | undefined {
  const stable = first.reply?.tensors();
  if (!stable || first.outcome!.outcome !== 'answered' || answer.outcome === 'failed') return undefined;
  const candidate = reply?.tensors();
  return candidate !== undefined && outputsAgree(stable, candidate, comparison);
}
