import { type ForcedRollout, noForce, type TrafficForce } from '@perch/endpoints';
import type { RolloutRecord } from './rollout.entity.ts';

/** Without contact to a control plane for so long, routers send the candidate nothing. */
export const evidenceLeaseMs = 15_000;

export interface ForceParts {
  before: TrafficForce;
  /** Digests that stay loaded without traffic. */
  keep: readonly string[];
  /** Base64 of the key that signs feedback tokens; null: there is none. */
  feedbackKey: string | null;
}

/** What routers and the endpoint's pass are told while this rollout goes on. */
export function forceOf(rollout: RolloutRecord, { before, keep, feedbackKey }: ForceParts): TrafficForce {
  const counts = ['shadowing', 'shifting', 'baking'].includes(rollout.state);
  return {
    ...noForce,
    stable: rollout.stable.digest,
    candidate: rollout.candidate.digest,
    keep: keep.filter((digest) => digest !== rollout.stable.digest && digest !== rollout.candidate.digest),
    share: counts ? rollout.share : 0,
    rollout: counts ? forcedRollout(rollout, feedbackKey) : null,
    shadowing: rollout.state === 'shadowing',
    held: before.held,
  };
}

/** Without a rollout: stable has all the traffic. */
export const restingForce = (
  before: TrafficForce,
  keep: readonly string[],
  more: Partial<Pick<TrafficForce, 'stable' | 'held'>> = {},
): TrafficForce => {
  const stable = more.stable === undefined ? before.stable : more.stable;
  const held = more.held === undefined ? before.held : more.held;
  return { ...noForce, stable, held, keep: keep.filter((digest) => digest !== stable) };
};

/** Replies carry a token only where a metric is brought later. */
export const wantsFeedbackKey = ({ policy }: Pick<RolloutRecord, 'policy'>): boolean =>
  policy.flags.some(({ feedbackWithinMs }) => feedbackWithinMs !== undefined);

function forcedRollout(rollout: RolloutRecord, feedbackKey: string | null): ForcedRollout {
  const { id, state, epoch, salt, policy, baseline } = rollout;
  const slowMs = policy.slow === false ? null : (baseline?.slowMs ?? null);
  return {
    id,
    epoch,
    salt,
    leaseMs: evidenceLeaseMs,
    slowMs,
    slowGraceMs: policy.slowGraceMs,
    metrics: [
      ...(slowMs === null ? [] : ['slow']),
      ...(policy.contract === false ? [] : ['contract']),
      ...policy.flags.map(({ name }) => name),
    ],
    fallback: policy.fallback === false ? null : policy.fallback,
    shadow:
      state === 'shadowing' && policy.shadow ? { sample: policy.shadow.sample, compare: policy.shadow.compare } : null,
    feedbackKey: wantsFeedbackKey(rollout) ? feedbackKey : null,
  };
}
