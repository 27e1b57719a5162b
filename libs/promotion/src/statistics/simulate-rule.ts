import type { Margin, RolloutPolicy } from '@perch/contracts';
import { worseInBake } from './bake.decide.ts';
import { marginFor } from './margin.decide.ts';
import { metricWeights, weightedEvidence } from './metric-weights.decide.ts';
import { clockStepMs, firstShare } from './ramp.decide.ts';
import { readGap } from './reading.decide.ts';
import { leastCandidateEvents } from './rollback.decide.ts';
import { EvidenceSum } from './rollback-evidence.decide.ts';
import { allowedStep, type Step } from './shift.decide.ts';
import type { Sample } from './simulate-traffic.ts';
import { BucketUnits, RequestUnits, type Units } from './simulate-units.ts';

export type TrialEnd = 'rolled_back' | 'promoted' | 'held' | 'aborted';

/** Something that moves the share of a candidate by what it sees; asked once for each report interval. */
export interface Rule {
  share: number;
  /** What the trial ends with, or null: it goes on. */
  look(sample: Sample, atMs: number): TrialEnd | null;
}

export interface SimulatedMetric {
  metric: string;
  r0: number;
}

export interface RuleSettings {
  policy: RolloutPolicy;
  unit: 'request' | 'bucket';
  metrics: readonly SimulatedMetric[];
  requestsPerMinute: number;
  /** Of `margin: auto`. */
  autoMargin?: Margin | null;
  /** Without ramp: the share stays, and only the rollback rule looks. */
  fixedShare?: number;
  /** Where the policy holds a rollout it stays there, guarded by the rollback rule, instead of ending the trial. */
  watchHeld?: boolean;
  /** Only the ramp: nothing is rolled back. */
  withoutRollback?: boolean;
}

/** How much a candidate's counts grow until its bounds are worth computing again. */
const worthLooking = 1.02;

/**
 * `decideStep` on simulated counts: the same formulas, kept up as counts come in instead of computed anew, and without
 * words. A spec holds both against each other.
 */
export class PerchRule implements Rule {
  share: number;
  stage: 'shifting' | 'baking' | 'held' = 'shifting';
  /** When the bake began; null: not yet. */
  bakeAtMs: number | null = null;
  readonly units: Units;
  readonly evidence: EvidenceSum[];
  private readonly weights: number[];
  private readonly logThreshold: number;
  private stepAtMs = 0;
  private lookAtN = 0;

  constructor(private readonly settings: RuleSettings) {
    const { policy, metrics, unit, requestsPerMinute, fixedShare } = settings;
    this.share = fixedShare ?? firstShare(policy, requestsPerMinute);
    this.units = unit === 'request' ? new RequestUnits(metrics.length) : new BucketUnits(metrics.length);
    this.units.begin(this.share);
    this.evidence = metrics.map(({ r0 }) => new EvidenceSum(r0));
    this.weights = metricWeights(metrics.map(({ metric }) => metric));
    this.logThreshold = -Math.log(policy.alpha);
  }

  look(sample: Sample, atMs: number): TrialEnd | null {
    const fresh = this.units.take(sample, this.evidence);
    if (fresh && !this.settings.withoutRollback && this.rollsBack()) return 'rolled_back';
    if (this.settings.fixedShare !== undefined || this.stage === 'held') return null;
    return this.stage === 'baking' ? this.lookAtBake(atMs) : this.lookAtRamp(atMs);
  }

  /** The weighted mean of the metrics' E. */
  e(): number {
    return weightedEvidence(
      this.evidence.map((sum) => sum.log()),
      this.weights,
    );
  }

  private rollsBack(): boolean {
    if (this.units.candidateEvents < leastCandidateEvents) return false;
    if (this.evidence.every((sum) => sum.atMost() < this.logThreshold)) return false;
    return this.e() >= 1 / this.settings.policy.alpha;
  }

  private lookAtRamp(atMs: number): TrialEnd | null {
    const { policy } = this.settings;
    const sinceStepMs = atMs - this.stepAtMs;
    const clockMs = clockStepMs(policy, this.share);
    if (sinceStepMs >= (clockMs ?? policy.dwellMs) && (clockMs !== null || this.learned())) {
      const step = this.allowedStep();
      if (step) return this.begin(step, atMs);
    }
    if (sinceStepMs < policy.maxWaitMs) return null;
    if (policy.onMaxWait === 'hold' && this.settings.watchHeld) {
      this.stage = 'held';
      return null;
    }
    return ({ hold: 'held', promote: 'promoted', abort: 'aborted' } as const)[policy.onMaxWait];
  }

  private lookAtBake(atMs: number): TrialEnd | null {
    const { policy, metrics, withoutRollback } = this.settings;
    const over = atMs - this.stepAtMs >= policy.bakeMs;
    const asked = !withoutRollback && (over || this.learned());
    if (asked && metrics.some((_, at) => this.worseInBake(at))) return 'rolled_back';
    return over ? 'promoted' : null;
  }

  private worseInBake(at: number): boolean {
    const reading = this.readingAt(at);
    const whole = { stable: this.units.wholeStable[at]!, candidate: reading.candidate };
    const { unit, policy } = this.settings;
    return worseInBake(reading, { whole, margin: this.marginAt(at) }, unit, policy.promotionAlpha);
  }

  /** Enough came in since the last look for other bounds. They hold at all times, so a look left out only waits. */
  private learned(): boolean {
    const n = this.units.candidate[0]?.n ?? 0;
    if (n < this.lookAtN) return false;
    this.lookAtN = Math.max(n + 1, n * worthLooking);
    return true;
  }

  /** What all metrics allow; the first one is asked alone, for it seldom allows what the others do not. */
  private allowedStep(): Step | null {
    const standing = { ...this.settings, share: this.share };
    const first = this.readingAt(0);
    if (!allowedStep(standing, [first])) return null;
    return allowedStep(standing, [first, ...this.units.candidate.slice(1).map((_, at) => this.readingAt(at + 1))]);
  }

  private readingAt(at: number) {
    const [stable, candidate] = [this.units.stable[at]!, this.units.candidate[at]!];
    return readGap({ stable, candidate, margin: this.marginAt(at) }, this.settings.policy.promotionAlpha);
  }

  private marginAt(at: number) {
    return marginFor(this.settings.policy, this.settings.metrics[at]!.metric, this.settings.autoMargin);
  }

  private begin({ next, share }: Step, atMs: number): null {
    this.share = share;
    this.stepAtMs = atMs;
    this.lookAtN = 0;
    this.units.begin(share);
    if (next === 'shift') return null;
    this.stage = 'baking';
    this.bakeAtMs = atMs;
    return null;
  }
}
