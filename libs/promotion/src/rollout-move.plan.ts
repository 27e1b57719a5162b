import { type Decision, type DecisionInput, type RolloutState, systemActor } from '@perch/contracts';
import type { NewQuarantine, TrafficForce, TrafficSight } from '@perch/endpoints';
import type { MeasuredBaseline, RolloutEvidence } from './evidence/evidence.entity.ts';
import type { Baseline, NewRolloutEvent, RolloutEnd, RolloutRecord } from './rollout.entity.ts';
import { forceOf, restingForce } from './traffic-force.plan.ts';

/** All that one look at the rollout of an endpoint sees. */
export interface RolloutWorld {
  sight: TrafficSight;
  /** The one that goes on. */
  active: RolloutRecord | null;
  /** The one that ended last, where none goes on. */
  last: RolloutRecord | null;
  /** The newest promoted one whose old version stays loaded. */
  kept: RolloutRecord | null;
  /** Null: nobody was to count yet. */
  evidence: RolloutEvidence | null;
  /** Null: not asked for; the active rollout has its own. */
  baseline: (Baseline & Partial<Pick<MeasuredBaseline, 'errorRate' | 'sentences'>>) | null;
  feedbackKey: string | null;
  now: Date;
}

/** What is to be written, in one transaction. Doing it again on the world it leads to changes nothing. */
export interface RolloutPlan {
  /** As it should stand; null: nothing of it changes. */
  rollout: RolloutRecord | null;
  force: TrafficForce;
  quarantine: Omit<NewQuarantine, 'endpoint'> | null;
  events: NewRolloutEvent[];
  /** Another look by itself after so long; 0: at once. Null: when somebody asks. */
  wakeInMs: number | null;
}

/** Who moves, and by what it was decided. */
export interface Cause {
  actor: string;
  decision: Decision | null;
  input: DecisionInput | null;
}
export const bySystem: Cause = { actor: systemActor.name, decision: null, input: null };
export const byPerson = (actor: string): Cause => ({ actor, decision: null, input: null });

export const eventOf = (type: string, message: string, { actor, decision, input }: Cause): NewRolloutEvent => ({
  type,
  actor,
  message,
  decision,
  input,
});

/** Old versions that stay loaded within their rollback window. */
export function keptDigests({ kept, sight, now }: RolloutWorld): string[] {
  if (!kept?.keepUntil || kept.keepUntil <= now || kept.candidate.digest !== sight.force.stable) return [];
  return [kept.stable.digest];
}

/** The rollout goes on as `rollout` says. */
export function goOn(
  world: RolloutWorld,
  rollout: RolloutRecord,
  events: NewRolloutEvent[],
  wakeInMs: number | null,
): RolloutPlan {
  const parts = { before: world.sight.force, keep: keptDigests(world), feedbackKey: world.feedbackKey };
  return { rollout, force: forceOf(rollout, parts), quarantine: null, events, wakeInMs };
}

/** A new weight is a new epoch: what was counted under another one is never mixed with it. */
export function atShare(
  world: RolloutWorld,
  rollout: RolloutRecord,
  state: RolloutState,
  share: number,
  gaps?: Record<string, number>,
): RolloutRecord {
  const epoch = rollout.epoch + 1;
  return {
    ...rollout,
    state,
    share,
    epoch,
    epochs: [...rollout.epochs, { epoch, share, since: world.now, ...(gaps ? { gaps } : {}) }],
    stepAt: world.now,
    patienceSince: world.now,
    run: rollout.run === 'waiting' ? 'running' : rollout.run,
  };
}

const over = (world: RolloutWorld, rollout: RolloutRecord, endedAs: RolloutEnd, reason: string): RolloutRecord => ({
  ...rollout,
  run: 'running',
  heldBy: null,
  share: 0,
  reason,
  endedAs,
  endedAt: world.now,
  keepUntil: null,
  queued: null,
});

/** The candidate is the new stable; the old version stays loaded for `rollbackWindowMs`. */
export function promote(world: RolloutWorld, rollout: RolloutRecord, reason: string, cause: Cause): RolloutPlan {
  const { rollbackWindowMs } = rollout.policy;
  const keepUntil = rollbackWindowMs > 0 ? new Date(world.now.getTime() + rollbackWindowMs) : null;
  return {
    rollout: { ...over(world, rollout, 'promoted', reason), state: 'promoted', keepUntil },
    force: restingForce(world.sight.force, keepUntil ? [rollout.stable.digest] : [], {
      stable: rollout.candidate.digest,
    }),
    quarantine: null,
    events: [eventOf('promoted', reason, cause)],
    wakeInMs: keepUntil && rollbackWindowMs,
  };
}

/** Back to stable, and the candidate's digest is never deployed again by itself. `heldBy`: the rule stays out of it, too. */
export function rollBack(
  world: RolloutWorld,
  rollout: RolloutRecord,
  reason: string,
  cause: Cause,
  heldBy: string | null = null,
): RolloutPlan {
  const { version, digest } = rollout.candidate;
  const { force } = world.sight;
  return {
    rollout: { ...over(world, rollout, heldBy === null ? 'verdict' : 'person', reason), state: 'rolled_back' },
    force: restingForce(force, keptDigests(world).filter(isNot(digest)), {
      stable: rollout.stable.digest,
      held: force.held ?? heldBy,
    }),
    quarantine: { digest, version, reason, rollout: rollout.id },
    events: [eventOf('rolled_back', reason, cause)],
    wakeInMs: null,
  };
}

/** Back to stable; nobody judged the candidate. */
export function abort(
  world: RolloutWorld,
  rollout: RolloutRecord,
  endedAs: RolloutEnd,
  reason: string,
  cause: Cause,
): RolloutPlan {
  const { exists, spec, force } = world.sight;
  const leaves = !exists || spec?.traffic.mode !== 'progressive';
  // Who is stable may have changed with the endpoint.
  const stable = leaves ? null : endedAs === 'endpoint' ? force.stable : rollout.stable.digest;
  const held = leaves ? null : endedAs === 'person' ? (force.held ?? cause.actor) : force.held;
  return {
    rollout: { ...over(world, rollout, endedAs, reason), state: 'aborted' },
    force: restingForce(force, leaves ? [] : keptDigests(world), {
      stable,
      held,
    }),
    quarantine: null,
    events: [eventOf('aborted', reason, cause)],
    wakeInMs: null,
  };
}

const isNot = (digest: string) => (one: string) => one !== digest;
