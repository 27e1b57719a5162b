import type { Decision, DecisionInput, MetricReading } from '@perch/contracts';

/** What a stage decides from. */
export interface Sight {
  input: DecisionInput;
  readings: MetricReading[];
  e: number;
  threshold: number;
}

/** What a stage decides. */
export type Outcome = Pick<Decision, 'verdict' | 'share' | 'next' | 'reasons' | 'nextStepInMs'>;

/** Nothing is done: the share stays. */
export const stay = (
  { input }: Sight,
  verdict: 'hold' | 'insufficient',
  reasons: string[],
  nextStepInMs: number | null,
): Outcome => ({ verdict, next: 'stay', share: input.share, reasons, nextStepInMs });
