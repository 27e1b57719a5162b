import type { DecisionInput } from '@perch/contracts';
import type { RolloutEvidence } from './evidence/evidence.entity.ts';
import type { RolloutRecord } from './rollout.entity.ts';
import { marginFor } from './statistics/margin.decide.ts';

/** Of a metric that the baseline says nothing of. */
const usualR0 = 1.25;

/** All that a decision looks at, as values: stored with it, it can be decided again. */
export function inputOf(rollout: RolloutRecord, evidence: RolloutEvidence, now: Date): DecisionInput {
  const { policy, baseline, epochs } = rollout;
  const gaps = epochs.at(-1)?.gaps ?? {};
  return {
    policy,
    unit: evidence.unit,
    share: rollout.share,
    stage: rollout.state === 'shadowing' || rollout.state === 'baking' ? rollout.state : 'shifting',
    sinceStepMs: Math.max(0, now.getTime() - rollout.stepAt.getTime()),
    sinceEvidenceMs: Math.max(0, now.getTime() - rollout.patienceSince.getTime()),
    requestsPerMinute: baseline?.requestsPerMinute ?? 0,
    requestsPerMinuteNow: evidence.requestsPerMinuteNow,
    candidateEvents: evidence.candidateEvents,
    metrics: evidence.metrics.map((counts) => ({
      ...counts,
      r0: baseline?.r0[counts.metric] ?? usualR0,
      margin: marginFor(policy, counts.metric, baseline?.autoMargin),
      ...(gaps[counts.metric] === undefined ? {} : { stepGap: gaps[counts.metric]! }),
    })),
    pairs: evidence.pairs,
    ...(evidence.holds.length > 0 ? { holds: evidence.holds } : {}),
    ...(evidence.feedback.length > 0 ? { feedback: evidence.feedback } : {}),
  };
}
