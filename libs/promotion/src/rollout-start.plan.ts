import { AppError, policyOf, type RolloutArm, type RolloutPolicy } from '@perch/contracts';
import type { TrafficSight } from '@perch/endpoints';
import type { RolloutRecord } from './rollout.entity.ts';
import { byPerson, bySystem, eventOf, goOn, type RolloutPlan, type RolloutWorld } from './rollout-move.plan.ts';
import { breakingChanges } from './signature.decide.ts';

export interface StartWish {
  version: number;
  digest: string;
}

/** Ids and salts come in, so that a plan can be repeated. */
export type NewId = () => string;

export const armOf = (sight: TrafficSight, { version, digest }: StartWish): RolloutArm => ({
  deployment: sight.deployments.find((one) => one.digest === digest)?.id ?? '',
  version,
  digest,
});

/** What has the traffic now; null: nothing has, or it is not known any more what it is. */
export function stableArm(sight: TrafficSight): RolloutArm | null {
  const found = sight.deployments.find(({ digest }) => digest === sight.force.stable);
  return found ? { deployment: found.id, version: found.version, digest: found.digest } : null;
}

/** In mode progressive, what the rule wants and is not stable is rolled out without anybody saying so. Null: nothing is to start. */
export function startByRule(world: RolloutWorld, newId: NewId): RolloutPlan | null {
  const { sight, last } = world;
  const { wish, force, spec, quarantine } = sight;
  if (!sight.exists || !spec || spec.stopped || spec.traffic.mode !== 'progressive') return null;
  const { newest } = wish;
  const stable = stableArm(sight);
  if (!newest || !stable || newest.digest === stable.digest || force.held !== null) return null;
  if (quarantine.includes(newest.digest) || !mayTryAgain(sight, last, newest.digest)) return null;
  const policy = policyOf(spec.traffic.policy);
  return begin(world, { newId, stable, wish: newest, policy, actor: null, allowBreaking: false, reason: '' });
}

/** What ended without a verdict is not tried over and over: never after `onMaxWait: abort`, and after `verifyMs` once it is ready. */
function mayTryAgain(sight: TrafficSight, last: RolloutRecord | null, digest: string): boolean {
  if (last?.candidate.digest !== digest || last.stable.digest !== sight.force.stable) return true;
  if (last.endedAs === 'timeout')
    return sight.deployments.some((one) => one.digest === digest && one.state === 'ready');
  return last.endedAs !== 'policy';
}

export interface HandStart {
  /** Null: the newest that the rule wants. */
  wish: StartWish | null;
  policy: RolloutPolicy;
  allowBreaking: boolean;
  actor: string;
  reason: string;
}

/** By a person. Throws `not_found`, `invalid` or `conflict` with what speaks against it. */
export function startByHand(world: RolloutWorld, hand: HandStart, newId: NewId): RolloutPlan {
  const { sight, active } = world;
  const { endpoint, spec } = sight;
  const refuse = (words: string) => new AppError('conflict', `endpoint ${endpoint}: ${words}`);
  if (!sight.exists || !spec) throw new AppError('not_found', `endpoint ${endpoint} does not exist`);
  if (spec.traffic.mode !== 'progressive')
    throw new AppError(
      'invalid',
      `endpoint ${endpoint}: a rollout wants traffic.mode progressive, and it is ${spec.traffic.mode}`,
    );
  if (spec.stopped) throw refuse('it is stopped; start it first');
  if (active)
    throw refuse(
      `rollout ${active.id} of version ${active.candidate.version} goes on; wait for its end, or abort or roll it back`,
    );
  const stable = stableArm(sight);
  if (!stable) throw refuse('nothing serves yet; the first version that is ready takes the traffic by itself');
  const wish = hand.wish ?? sight.wish.newest;
  if (!wish) throw refuse('its rule wants no version');
  if (wish.digest === stable.digest)
    throw refuse(`version ${wish.version}, as it would be deployed, is stable already`);
  if (sight.quarantine.includes(wish.digest))
    throw refuse(
      `version ${wish.version} is in quarantine, because an earlier rollout refused it; release digest ${wish.digest} first`,
    );
  const faults = hand.allowBreaking ? [] : breakingOf(sight, stable.digest, wish.digest);
  if (faults.length > 0)
    throw refuse(`version ${wish.version} breaks callers of version ${stable.version}: ${faults.join('; ')}; ${allow}`);
  return begin(world, { ...hand, newId, stable, wish });
}

const allow = 'allow it with allowBreaking';
export const breakingOf = (sight: TrafficSight, stable: string, candidate: string): string[] => {
  const signature = (digest: string) => sight.deployments.find((one) => one.digest === digest)?.signature ?? null;
  return breakingChanges(signature(stable), signature(candidate));
};

interface Begin extends Omit<HandStart, 'actor' | 'wish'> {
  newId: NewId;
  wish: StartWish;
  stable: RolloutArm;
  /** Null: the rule. */
  actor: string | null;
}

function begin(world: RolloutWorld, { newId, stable, wish, policy, actor, ...more }: Begin): RolloutPlan {
  const { sight, now } = world;
  const { newest } = sight.wish;
  const cause = actor === null ? bySystem : byPerson(actor);
  const what =
    wish.version === stable.version ? `version ${wish.version} with new settings` : `version ${wish.version}`;
  const reason = `${what} is to take over from version ${stable.version}${more.reason ? `: ${more.reason}` : ''}`;
  const chosen = newest?.digest !== wish.digest;
  const rollout: RolloutRecord = {
    id: newId(),
    endpoint: sight.endpoint,
    rowVersion: 0,
    state: 'pending',
    run: 'running',
    heldBy: null,
    reason,
    stable,
    candidate: armOf(sight, wish),
    policy,
    stickyHeader: sight.spec?.traffic.sticky?.header ?? null,
    salt: newId(),
    epoch: 0,
    share: 0,
    epochs: [],
    baseline: null,
    byHand: actor !== null && chosen,
    allowBreaking: more.allowBreaking,
    wishSeen: newest?.digest ?? null,
    restarts: 0,
    queued: null,
    decision: null,
    decidedAt: null,
    pairs: null,
    fallbacks: 0,
    startedAt: now,
    startedBy: cause.actor,
    stepAt: now,
    verifyingSince: now,
    patienceSince: now,
    endedAt: null,
    endedAs: null,
    keepUntil: null,
  };
  const plan = goOn(world, rollout, [eventOf('started', reason, cause)], 0);
  // Whoever rolls out another version than the rule wants would see the rule undo it.
  return chosen && actor !== null ? { ...plan, force: { ...plan.force, held: plan.force.held ?? actor } } : plan;
}
