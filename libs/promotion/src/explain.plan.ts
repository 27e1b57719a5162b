import {
  canonicalJson,
  type Decision,
  type DecisionInput,
  type FeedbackReading,
  isOver,
  type Rollout,
} from '@perch/contracts';
import { figure, gapSentence, percent, splitSentence, tallySentence } from './statistics/words.ts';

/** Whether both decide the same, as they would be stored. */
export const sameDecision = (stored: Decision, recomputed: Decision): boolean =>
  canonicalJson(stored) === canonicalJson(JSON.parse(JSON.stringify(recomputed)));

const endings: Record<string, string> = {
  promoted: 'has taken over',
  rolled_back: 'was rolled back',
  aborted: 'was taken back unjudged',
};

function headline({ candidate, stable, state, run, heldBy, weightPercent, reason, endpoint }: Rollout): string {
  const who = `Version ${candidate.version} of ${endpoint}`;
  if (isOver(state)) return `${who} ${endings[state]} (stable was version ${stable.version}): ${reason}`;
  const is = run === 'held' ? `is held at ${weightPercent} % by ${heldBy}` : `is ${state} at ${weightPercent} %`;
  return `${who} ${is}, beside stable version ${stable.version}: ${reason}`;
}

const shareOf = ({ n, x }: { n: number; x: number }) => (n === 0 ? 'none yet' : `${percent(x / n)} of ${n}`);
const feedbackSentence = ({ flag, stable, candidate }: FeedbackReading) =>
  `Feedback on ${flag} came back for ${shareOf(candidate)} on the candidate and ${shareOf(stable)} on stable.`;

/** Why a decision is as it is, for a person: what was decided, what was counted, and what each rule made of it. */
export function explainDecision(rollout: Rollout, decision: Decision | null, input: DecisionInput | null): string[] {
  if (!decision || !input)
    return [headline(rollout), 'No decision by evidence was made: a person or the state of its servers decided.'];
  const unit = input.unit === 'bucket' ? 'users' : 'requests';
  return [
    headline(rollout),
    ...decision.reasons,
    `The candidate had ${percent(input.share)} of the traffic; counted are ${unit}.`,
    ...decision.readings.flatMap((reading) => [tallySentence(reading), gapSentence(reading)]),
    ...input.metrics.filter(({ epochs }) => epochs.some(({ stableOpen = 0 }) => stableOpen > 0)).map(splitSentence),
    `Evidence against the candidate is ${figure(decision.e)}; at ${figure(decision.threshold)} it goes back.`,
    ...(input.feedback ?? []).map(feedbackSentence),
    ...(input.holds ?? []).map((hold) => `Held back by: ${hold}`),
  ];
}
