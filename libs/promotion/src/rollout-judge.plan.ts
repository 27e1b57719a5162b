import type { Decision, DecisionInput, RolloutPolicy } from '@perch/contracts';
import type { TrafficDeployment } from '@perch/endpoints';
import { inputOf } from './decision-input.plan.ts';
import type { RolloutEvidence } from './evidence/evidence.entity.ts';
import type { NewRolloutEvent, RolloutRecord } from './rollout.entity.ts';
import {
  abort,
  atShare,
  bySystem,
  type Cause,
  eventOf,
  goOn,
  promote,
  type RolloutPlan,
  type RolloutWorld,
  rollBack,
} from './rollout-move.plan.ts';
import { bakeShare, clockStepMs, sharesOf } from './statistics/ramp.decide.ts';
import { percent } from './statistics/words.ts';

export type Decide = (input: DecisionInput) => Decision;

/** Counts are written with the rollout at most so often, so that many reports are one write. */
const refreshMs = 900;
/** Somebody asks at each report; without any, time alone is looked at this often. */
export const longestWaitMs = 30_000;

/** The largest weight before the bake that the policy allows. */
export const mostShare = (policy: RolloutPolicy): number => Math.max(...sharesOf(policy));

/** Traffic is on the candidate, or copies of it: guards first, then the evidence. */
export function judge(world: RolloutWorld, rollout: RolloutRecord, decide: Decide): RolloutPlan {
  const { sight, evidence } = world;
  const of = (digest: string) => sight.deployments.find((one) => one.digest === digest);
  const [stable, candidate] = [of(rollout.stable.digest), of(rollout.candidate.digest)];
  const { version } = rollout.candidate;
  // A server that both are on takes both away; that says nothing about either.
  if (candidate?.state === 'failed' && stable?.state === 'ready')
    return rollBack(world, rollout, `version ${version} serves nowhere any more: ${why(candidate)}`, bySystem);
  if (candidate?.state !== 'ready') return pauseFor(world, rollout, `version ${version}`, candidate);
  if (stable?.state !== 'ready') return pauseFor(world, rollout, `stable version ${rollout.stable.version}`, stable);
  if (!evidence) return { ...goOn(world, rollout, [], longestWaitMs), rollout: null };
  const input = inputOf(rollout, evidence, world.now);
  return follow(world, rollout, decide(input), input);
}

const why = (deployment: TrafficDeployment | undefined): string =>
  deployment ? (deployment.reason ?? `it is ${deployment.state}`) : 'it is not deployed yet';

/** One arm serves nowhere at the moment: routers count nothing, and nothing is decided. */
function pauseFor(
  world: RolloutWorld,
  rollout: RolloutRecord,
  name: string,
  deployment: TrafficDeployment | undefined,
): RolloutPlan {
  const reason = `${name} serves nowhere at the moment: ${why(deployment)}`;
  const run = rollout.run === 'held' ? rollout.run : 'waiting';
  const events = run === 'waiting' && rollout.run !== run ? [eventOf('waiting', reason, bySystem)] : [];
  const plan = goOn(world, { ...rollout, run, reason }, events, longestWaitMs);
  return run === rollout.run && reason === rollout.reason ? { ...plan, rollout: null } : plan;
}

/** Does what the decision says, as far as the state of the rollout lets it. */
function follow(world: RolloutWorld, before: RolloutRecord, decision: Decision, input: DecisionInput): RolloutPlan {
  const cause: Cause = { ...bySystem, decision, input };
  const reason = decision.reasons[0] ?? decision.verdict;
  const { evidence, now } = world;
  const rollout = { ...before, decision: shown(decision, input), decidedAt: now, ...aside(evidence!) };
  if (decision.next === 'roll_back') return rollBack(world, rollout, reason, cause);
  // Stopped where it is by somebody: it is still guarded, and nothing else.
  if (rollout.run === 'held') return refreshed(world, before, rollout, []);
  const isBaking = rollout.state === 'baking' && (decision.next === 'shift' || decision.next === 'bake');
  if (isBaking) return stay(world, before, { ...rollout, reason }, cause);
  switch (decision.next) {
    case 'shift':
      return shift(world, rollout, decision, reason, cause);
    case 'bake':
      return stepped(world, atShare(world, rollout, 'baking', bakeShare), reason, cause);
    case 'promote':
      return promote(world, rollout, reason, cause);
    case 'abort':
      return abort(world, rollout, 'policy', reason, cause);
    case 'hold': {
      const held = { ...rollout, run: 'held' as const, heldBy: cause.actor, reason };
      return goOn(world, held, [eventOf('held', reason, cause)], longestWaitMs);
    }
    case 'stay':
      return stay(world, before, { ...rollout, reason }, cause);
  }
}

const aside = ({ pairs, fallbacks }: RolloutEvidence) => ({ pairs, fallbacks });
/** With what people ask for beside the decision itself. */
const shown = (decision: Decision, { feedback }: DecisionInput): Decision =>
  feedback ? { ...decision, feedback } : decision;

function shift(
  world: RolloutWorld,
  rollout: RolloutRecord,
  decision: Decision,
  reason: string,
  cause: Cause,
): RolloutPlan {
  const share = Math.min(decision.share, mostShare(rollout.policy));
  if (share === rollout.share && rollout.state === 'shifting') return stay(world, rollout, rollout, cause);
  const gaps = Object.fromEntries(decision.readings.map(({ metric, gap }) => [metric, gap]));
  const next = atShare(world, rollout, 'shifting', share, gaps);
  return stepped(world, next, reason, cause, share < rollout.share ? 'traffic_grew' : 'step');
}

function stepped(
  world: RolloutWorld,
  rollout: RolloutRecord,
  reason: string,
  cause: Cause,
  type = 'step',
): RolloutPlan {
  const sentences = cause.decision?.reasons.join(' ') ?? reason;
  const message = `version ${rollout.candidate.version} gets ${percent(rollout.share)} from now on: ${sentences}`;
  return goOn(world, { ...rollout, reason }, [eventOf(type, message, cause)], soonest(rollout, world.now));
}

/** Nothing moves. It is `waiting` when evidence has been too little for a dwell and still is. */
function stay(world: RolloutWorld, before: RolloutRecord, rollout: RolloutRecord, cause: Cause): RolloutPlan {
  const patienceMs = world.now.getTime() - rollout.patienceSince.getTime();
  const lacks = cause.decision?.verdict === 'insufficient' && patienceMs >= rollout.policy.dwellMs;
  const run = lacks ? ('waiting' as const) : ('running' as const);
  const events = lacks && before.run !== 'waiting' ? [eventOf('waiting', rollout.reason, cause)] : [];
  return refreshed(world, before, { ...rollout, run }, events);
}

function refreshed(
  world: RolloutWorld,
  before: RolloutRecord,
  rollout: RolloutRecord,
  events: NewRolloutEvent[],
): RolloutPlan {
  const same =
    events.length === 0 && before.run === rollout.run && before.decision?.verdict === rollout.decision?.verdict;
  const fresh = before.decidedAt && world.now.getTime() - before.decidedAt.getTime() < refreshMs;
  const plan = goOn(world, rollout, events, soonest(rollout, world.now));
  return same && fresh ? { ...plan, rollout: null } : plan;
}

/** When time alone may change the decision. */
export function soonest({ policy, stepAt, patienceSince, state, share }: RolloutRecord, now: Date): number {
  const forMs = state === 'shifting' ? clockStepMs(policy, share) : null;
  const moments = [
    stepAt.getTime() + policy.dwellMs,
    ...(state === 'baking' ? [stepAt.getTime() + policy.bakeMs] : []),
    ...(state === 'shadowing' && policy.shadow ? [stepAt.getTime() + policy.shadow.mostMs] : []),
    ...(forMs === null ? [] : [stepAt.getTime() + forMs]),
    patienceSince.getTime() + policy.maxWaitMs,
  ];
  const ahead = moments.map((at) => at - now.getTime()).filter((ms) => ms > 0);
  return Math.min(longestWaitMs, ...ahead);
}
