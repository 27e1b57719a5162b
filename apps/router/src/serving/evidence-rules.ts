import type { RouteRollout } from '@perch/contracts';
import type { FirstOutcome } from './evidence-trial.ts';

/** What the rules decide about one request: bit m of `judged`, metric m judged it; of `events`, it had the event. */
export interface Judgement {
  judged: number;
  events: number;
}

/** One bit each; a policy has at most 3 + 16. */
const mostMetrics = 30;
export const errorBit = 1;

/** The guard metrics of one rollout, and which of them judges which outcome. */
export class EvidenceRules {
  /** `error` first. */
  readonly metrics: readonly string[];
  private readonly slowMs: number;
  private readonly bits: ReadonlyMap<string, number>;
  private readonly slowBit: number;
  private readonly contractBit: number;
  private readonly flagBits: number;

  constructor({ metrics, slowMs }: Pick<RouteRollout, 'metrics' | 'slowMs'>) {
    this.metrics = [...new Set(['error', ...metrics])].slice(0, mostMetrics);
    this.bits = new Map(this.metrics.map((metric, place) => [metric, 1 << place]));
    this.slowMs = slowMs ?? Number.POSITIVE_INFINITY;
    this.slowBit = slowMs === null ? 0 : this.bitOf('slow');
    this.contractBit = this.bitOf('contract');
    this.flagBits = ((1 << this.metrics.length) - 1) & ~(errorBit | this.bitOf('slow') | this.contractBit);
  }

  private bitOf(metric: string): number {
    return this.bits.get(metric) ?? 0;
  }

  /** Writes into `into`. `graced`: the epoch is so young that nobody is judged by `slow`. */
  judge({ outcome, durationMs, broken, flags }: FirstOutcome, graced: boolean, into: Judgement): void {
    const slow = !graced && durationMs > this.slowMs ? this.slowBit : 0;
    switch (outcome) {
      case 'failed':
        into.judged = errorBit;
        into.events = errorBit;
        return;
      case 'refused':
        into.judged = errorBit;
        into.events = 0;
        return;
      case 'left':
        // it had waited too long already: otherwise an arm that never answers would be judged by nobody
        into.judged = slow;
        into.events = slow;
        return;
      case 'answered':
        into.judged =
          errorBit | this.flagBits | (graced ? 0 : this.slowBit) | (broken === undefined ? 0 : this.contractBit);
        into.events = slow | (broken ? this.contractBit : 0);
        if (flags) for (const flag of flags) into.events |= this.bitOf(flag) & this.flagBits;
    }
  }
}
