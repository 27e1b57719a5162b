import { AppError, isOver, type RolloutVerb } from '@perch/contracts';
import type { RolloutRecord } from './rollout.entity.ts';
import { enter } from './rollout.plan.ts';
import {
  abort,
  atShare,
  byPerson,
  type Cause,
  eventOf,
  goOn,
  promote,
  type RolloutPlan,
  type RolloutWorld,
  rollBack,
} from './rollout-move.plan.ts';
import { bakeShare, sharesOf } from './statistics/ramp.decide.ts';

export interface Command {
  verb: RolloutVerb;
  /** Name of the person. */
  actor: string;
  reason: string;
}

/**
 * What a person's word makes of a rollout; null: it is so already. `rollout` is the one named, which may be over: then
 * only going back to the old version is left, while that is loaded. Throws `conflict` with what speaks against it.
 */
export function planCommand(world: RolloutWorld, rollout: RolloutRecord, command: Command): RolloutPlan | null {
  const { verb, actor, reason } = command;
  const words = (what: string) => `${what} by ${actor}${reason ? `: ${reason}` : ''}`;
  const cause = byPerson(actor);
  if (isOver(rollout.state)) return afterwards(world, rollout, verb, words('rolled back'), cause);
  switch (verb) {
    case 'pause':
      return rollout.run === 'held' ? null : held(world, rollout, words('held'), cause);
    case 'resume':
      return rollout.run === 'held' ? resumed(world, rollout, words('resumed'), cause) : null;
    case 'advance':
      return advance(world, rollout, words('advanced'), cause);
    case 'promote':
      requireReady(world, rollout, verb);
      return promote(world, rollout, words('promoted'), cause);
    case 'abort':
      return abort(world, rollout, 'person', words('aborted'), cause);
    case 'rollback':
      return rollBack(world, rollout, words('rolled back'), cause, actor);
  }
}

const held = (world: RolloutWorld, rollout: RolloutRecord, reason: string, cause: Cause): RolloutPlan =>
  goOn(world, { ...rollout, run: 'held', heldBy: cause.actor, reason }, [eventOf('held', reason, cause)], null);

/** Patience begins anew: what was too little for `maxWaitMs` may take as long again. */
const resumed = (world: RolloutWorld, rollout: RolloutRecord, reason: string, cause: Cause): RolloutPlan =>
  goOn(
    world,
    { ...rollout, run: 'running', heldBy: null, reason, patienceSince: world.now },
    [eventOf('resumed', reason, cause)],
    0,
  );

/** One stage or one weight further, whatever the evidence says; the rollback rule stays armed. */
function advance(world: RolloutWorld, before: RolloutRecord, words: string, cause: Cause): RolloutPlan {
  requireReady(world, before, 'advance');
  const rollout: RolloutRecord = { ...before, run: 'running', heldBy: null };
  if (rollout.state === 'pending' || rollout.state === 'verifying')
    return enter(world, rollout, rollout.policy.shadow ? 'shadowing' : 'shifting', { words, cause });
  if (rollout.state === 'shadowing') return enter(world, rollout, 'shifting', { words, cause });
  if (rollout.state === 'baking') return promote(world, rollout, words, cause);
  const share = sharesOf(rollout.policy).find((next) => next > rollout.share);
  const next = atShare(world, rollout, share === undefined ? 'baking' : 'shifting', share ?? bakeShare);
  return goOn(world, { ...next, reason: words }, [eventOf('step', words, cause)], 0);
}

function requireReady({ sight }: RolloutWorld, { id, candidate, state }: RolloutRecord, verb: RolloutVerb): void {
  const deployment = sight.deployments.find(({ digest }) => digest === candidate.digest);
  if (deployment?.state === 'ready' && state !== 'pending') return;
  const why = deployment ? (deployment.reason ?? `it is ${deployment.state}`) : 'it is not deployed yet';
  throw new AppError('conflict', `rollout ${id}: cannot ${verb}, version ${candidate.version} is not ready: ${why}`);
}

const outcomes = { promoted: 'promote', rolled_back: 'rollback', aborted: 'abort' } as const;

function afterwards(
  world: RolloutWorld,
  rollout: RolloutRecord,
  verb: RolloutVerb,
  words: string,
  cause: Cause,
): RolloutPlan | null {
  const { sight, active, now } = world;
  const { id, state, stable, candidate } = rollout;
  if (outcomes[state as keyof typeof outcomes] === verb) return null;
  const refuse = (why: string) => new AppError('conflict', `rollout ${id}: ${why}`);
  if (state !== 'promoted' || verb !== 'rollback') throw refuse(`it is over (${state}); there is nothing to ${verb}`);
  if (active)
    throw refuse(`rollout ${active.id} of version ${active.candidate.version} goes on; abort it or roll it back first`);
  if (sight.force.stable !== candidate.digest)
    throw refuse(`version ${candidate.version} is not stable any more; roll back the rollout that replaced it`);
  const old = sight.deployments.find(({ digest }) => digest === stable.digest);
  if (!rollout.keepUntil || rollout.keepUntil <= now || old?.state !== 'ready')
    throw refuse(
      `version ${stable.version} is not loaded any more (its rollback window is over); start a rollout to it instead`,
    );
  return rollBack(world, rollout, `${words} after its promotion`, cause, cause.actor);
}
