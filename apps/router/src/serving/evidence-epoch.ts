import type { KeyObject } from 'node:crypto';
import { type PairEvidence, type RouteRollout, readFeedbackKey, type WorkerEvidence } from '@perch/contracts';
import type { Side } from './call.ts';
import { type Cohort, EvidenceCohorts } from './evidence-cohorts.ts';
import { EvidenceRules, errorBit } from './evidence-rules.ts';
import { EvidenceTally } from './evidence-tally.ts';
import { EvidenceTrial, type FirstOutcome } from './evidence-trial.ts';

/** What one pair of a shadow showed: the metrics whose event each side had; `agree` left out: not compared. */
export interface PairOutcome {
  stable: readonly string[];
  candidate: readonly string[];
  agree?: boolean;
}

interface Views {
  /** Of all that arrived until a moment ago. */
  ended: EvidenceTally;
  /** Of the cohorts that are closed. */
  closed: EvidenceTally;
}

/** What this process counted in one epoch of one rollout. */
export class EvidenceEpoch {
  readonly spec: RouteRollout;
  /** Signs feedback tokens; undefined: none are given. */
  readonly key: KeyObject | undefined;
  private readonly rules: EvidenceRules;
  private readonly cohorts = new EvidenceCohorts();
  private readonly arms: Readonly<Record<Side, Views>>;
  private firstServedAt: number | undefined;
  private pairs: PairEvidence | undefined;
  private fallbacks = 0;
  private keyless = 0;
  /** As told last. */
  private open: Readonly<Record<Side, number>> = { stable: 0, candidate: 0 };
  private changed = false;

  constructor(spec: RouteRollout, sticky: boolean) {
    this.spec = spec;
    this.key = spec.feedbackKey === null ? undefined : readFeedbackKey(spec.feedbackKey);
    this.rules = new EvidenceRules(spec);
    const tally = () => new EvidenceTally(this.rules.metrics, sticky);
    this.arms = { stable: { ended: tally(), closed: tally() }, candidate: { ended: tally(), closed: tally() } };
  }

  /** A request was put on its arm. `timeoutMs`: the longest it may take. */
  begin(side: Side, bucket: number, now: number, timeoutMs: number): EvidenceTrial {
    this.firstServedAt ??= now;
    const cohort = this.cohorts.at(now, timeoutMs);
    const trial = new EvidenceTrial(this, side, bucket, now, cohort);
    this.cohorts.begin(trial, cohort);
    return trial;
  }

  /** The same for one without its sticky key. */
  beginKeyless(side: Side, now: number): EvidenceTrial {
    this.keyless += 1;
    this.changed = true;
    return new EvidenceTrial(this, side, -1, now, undefined);
  }

  end(trial: EvidenceTrial, cohort: Cohort, outcome: FirstOutcome): void {
    const graced = trial.startedAt - this.firstServedAt! < this.spec.slowGraceMs;
    this.rules.judge(outcome, graced, trial);
    this.settle(trial, cohort);
  }

  private settle(trial: EvidenceTrial, cohort: Cohort): void {
    trial.ended = true;
    this.cohorts.settle(trial, cohort);
    if (trial.told) this.count(trial, 'ended');
  }

  private count(trial: EvidenceTrial, view: keyof Views): void {
    if (trial.judged === 0) return;
    this.arms[trial.side][view].add(trial);
    this.changed = true;
  }

  fellBack(): void {
    this.fallbacks += 1;
    this.changed = true;
  }

  pair({ stable, candidate, agree }: PairOutcome): void {
    const pairs = this.pairsSoFar();
    pairs.pairs += 1;
    if (agree !== undefined) pairs.compared += 1;
    if (agree) pairs.agree += 1;
    for (const metric of this.rules.metrics) {
      const side = stable.includes(metric) ? 'stable' : 'candidate';
      if (stable.includes(metric) === candidate.includes(metric)) continue;
      pairs.discordant[metric] ??= { stable: 0, candidate: 0 };
      pairs.discordant[metric][side] += 1;
    }
  }

  pairDropped(): void {
    this.pairsSoFar().dropped += 1;
  }

  private pairsSoFar(): PairEvidence {
    this.changed = true;
    this.pairs ??= { pairs: 0, agree: 0, compared: 0, discordant: {}, dropped: 0 };
    return this.pairs;
  }

  /** Nothing is on its way and all was told. */
  get atRest(): boolean {
    return this.cohorts.length === 0 && !this.changed;
  }

  /**
   * Cumulative counts, and who is on their way; undefined: nothing new since they were told last. Of the sets of buckets
   * only those that grew. `all`: no request comes any more.
   */
  tell(now: number, all: boolean): WorkerEvidence | undefined {
    for (const trial of this.cohorts.pass(now, all)) if (trial.ended) this.count(trial, 'ended');
    for (const cohort of this.cohorts.close(now, all)) this.close(cohort);
    const open = this.cohorts.onTheWay();
    if (open.stable !== this.open.stable || open.candidate !== this.open.candidate) this.changed = true;
    this.open = open;
    if (!this.changed) return undefined;
    this.changed = false;
    const { spec, arms, pairs, fallbacks, keyless } = this;
    const tellArm = (side: Side) => ({
      ended: arms[side].ended.tell(),
      closed: arms[side].closed.tell(),
      open: open[side],
    });
    const [stable, candidate] = [tellArm('stable'), tellArm('candidate')];
    const told = { rollout: spec.id, epoch: spec.epoch, worker: 0, stable, candidate, fallbacks, keyless };
    return pairs ? { ...told, pairs: structuredClone(pairs) } : told;
  }

  private close(cohort: Cohort): void {
    for (const trial of cohort.trials) {
      if (!trial.ended) {
        // past its time: a timeout, whatever comes of it
        trial.judged = errorBit;
        trial.events = errorBit;
        this.settle(trial, cohort);
      }
      this.count(trial, 'closed');
    }
  }
}
