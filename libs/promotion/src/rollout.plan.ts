import { canonicalJson, policyOf } from '@perch/contracts';
import { noForce, type TrafficDeployment } from '@perch/endpoints';
import type { Baseline, RolloutRecord } from './rollout.entity.ts';
import { type Decide, judge, longestWaitMs } from './rollout-judge.plan.ts';
import {
  abort,
  atShare,
  bySystem,
  type Cause,
  eventOf,
  goOn,
  keptDigests,
  promote,
  type RolloutPlan,
  type RolloutWorld,
  rollBack,
} from './rollout-move.plan.ts';
import { armOf, breakingOf, type NewId, startByRule } from './rollout-start.plan.ts';
import { smallestMargin } from './statistics/margin-auto.decide.ts';
import { firstShare } from './statistics/ramp.decide.ts';
import { percent } from './statistics/words.ts';
import { restingForce } from './traffic-force.plan.ts';

/** What decides and what is drawn come in: the plan itself is a function of the world. */
export interface PlanParts {
  decide: Decide;
  newId: NewId;
}

/**
 * The next step of an endpoint's rollout: one at a time, each a transaction of its own, so that it does not matter
 * between which two of them a program dies.
 */
export function planRollout(world: RolloutWorld, { decide, newId }: PlanParts): RolloutPlan {
  const rollout = world.active;
  if (!rollout) return startByRule(world, newId) ?? rest(world);
  const leaving = endedByEndpoint(world, rollout);
  if (leaving !== null) return abort(world, rollout, 'endpoint', leaving, bySystem);
  const newer = takeNewer(world, rollout);
  if (newer) return newer;
  switch (rollout.state) {
    case 'pending':
      return awaitDeployment(world, rollout);
    case 'verifying':
      return verify(world, rollout);
    default:
      return judge(world, rollout, decide);
  }
}

/** No rollout goes on: stable has all traffic, and old versions go when their rollback window is over. */
function rest(world: RolloutWorld): RolloutPlan {
  const { sight, kept, now } = world;
  const progressive = sight.exists && sight.spec?.traffic.mode === 'progressive';
  const keep = keptDigests(world);
  const force = progressive ? restingForce(sight.force, keep) : noForce;
  const wakeInMs = keep.length > 0 ? kept!.keepUntil!.getTime() - now.getTime() : null;
  return { rollout: null, force, quarantine: null, events: [], wakeInMs };
}

/** Why the endpoint itself ends it; null: it does not. */
function endedByEndpoint({ sight }: RolloutWorld, rollout: RolloutRecord): string | null {
  const { spec, wish, force } = sight;
  const { version } = rollout.candidate;
  if (!sight.exists || !spec) return 'the endpoint was removed';
  if (spec.stopped) return 'the endpoint was stopped';
  if (spec.traffic.mode !== 'progressive') return `the endpoint's traffic has mode ${spec.traffic.mode} now`;
  if ((spec.traffic.sticky?.header ?? null) !== rollout.stickyHeader)
    return 'the sticky key of the endpoint changed, and users cannot be counted across that';
  if (sight.quarantine.includes(rollout.candidate.digest)) return `version ${version} was put in quarantine`;
  if (force.stable !== rollout.stable.digest) return `stable is not version ${rollout.stable.version} any more`;
  if (rollout.byHand) return null;
  if (wish.newest === null) return `the rule of the endpoint wants version ${version} no more`;
  if (wish.newest.digest === rollout.stable.digest)
    return `the rule of the endpoint wants version ${wish.newest.version} again, which is stable`;
  return null;
}

/** The rule wants another version than the one on trial: it takes its place at most `mostRestarts` times, then it waits. */
function takeNewer(world: RolloutWorld, rollout: RolloutRecord): RolloutPlan | null {
  const { sight, now } = world;
  const { newest } = sight.wish;
  if (!newest) return null;
  const isOnTrial = newest.digest === rollout.candidate.digest || newest.digest === rollout.wishSeen;
  if (isOnTrial) return rollout.queued ? goOn(world, { ...rollout, queued: null }, [], 0) : null;
  const held = rollout.run === 'held' || rollout.byHand || sight.force.held !== null;
  if (held || rollout.restarts >= rollout.policy.mostRestarts) {
    if (rollout.queued?.digest === newest.digest) return null;
    const message = `version ${newest.version} waits for the end of the rollout of version ${rollout.candidate.version}`;
    return goOn(world, { ...rollout, queued: newest }, [eventOf('queued', message, bySystem)], 0);
  }
  const reason = `version ${newest.version} takes the place of version ${rollout.candidate.version}`;
  const restarted: RolloutRecord = {
    ...rollout,
    state: 'pending',
    run: 'running',
    reason,
    candidate: armOf(sight, newest),
    policy: policyOf(sight.spec!.traffic.policy),
    allowBreaking: false,
    wishSeen: newest.digest,
    restarts: rollout.restarts + 1,
    queued: null,
    epoch: rollout.epoch + 1,
    share: 0,
    epochs: [],
    decision: null,
    decidedAt: null,
    pairs: null,
    fallbacks: 0,
    stepAt: now,
    verifyingSince: now,
    patienceSince: now,
  };
  return goOn(world, restarted, [eventOf('restarted', reason, bySystem)], 0);
}

/** Until the endpoint's pass has made a deployment of it. */
function awaitDeployment(world: RolloutWorld, rollout: RolloutRecord): RolloutPlan {
  const { sight } = world;
  const candidate = armOf(sight, rollout.candidate);
  if (candidate.deployment === '') return waitForIt(world, rollout, undefined);
  const { baseline, sentences } = freeze(rollout, world.baseline);
  const reason = `version ${candidate.version} has to prove itself on its servers`;
  const verifying = { ...rollout, state: 'verifying' as const, candidate, baseline, reason };
  return goOn(world, verifying, [eventOf('stage', [reason, ...sentences].join('; '), bySystem)], 0);
}

/** Measured once: no decision moves with what is measured later. */
function freeze(
  { baseline, policy }: RolloutRecord,
  measured: RolloutWorld['baseline'],
): { baseline: Baseline; sentences: string[] } {
  if (baseline) return { baseline, sentences: [] };
  const { requestsPerMinute = 0, slowMs = null, r0 = {}, errorRate = null, sentences = [] } = measured ?? {};
  const frozen: Baseline = { requestsPerMinute, slowMs, r0 };
  if (policy.margin !== 'auto') return { baseline: frozen, sentences: [...sentences] };
  const margin = smallestMargin(policy, { requestsPerMinute, rate: errorRate ?? 0.01 }, policy.withinMs!);
  const said = margin
    ? `${Number((margin.absolute * 100).toFixed(2))} points are the smallest margin that this traffic can prove in time`
    : 'this traffic can prove no margin in time; the usual ones hold';
  return { baseline: { ...frozen, ...(margin ? { autoMargin: margin } : {}) }, sentences: [...sentences, said] };
}

/** Hard guards, at once and without statistics; then the first traffic, or copies of it. */
function verify(world: RolloutWorld, rollout: RolloutRecord): RolloutPlan {
  const { sight } = world;
  const { stable, candidate, policy, allowBreaking } = rollout;
  const of = (digest: string) => sight.deployments.find((one) => one.digest === digest);
  const deployment = of(candidate.digest);
  if (deployment?.state === 'failed')
    return rollBack(
      world,
      rollout,
      `version ${candidate.version} did not prove itself: ${deployment.reason}`,
      bySystem,
    );
  if (deployment?.state !== 'ready') return waitForIt(world, rollout, deployment);
  const faults = allowBreaking ? [] : breakingOf(sight, stable.digest, candidate.digest);
  if (faults.length > 0) {
    const reason = `version ${candidate.version} breaks callers of version ${stable.version}: ${faults.join('; ')}`;
    return rollBack(world, rollout, reason, bySystem);
  }
  if (rollout.run === 'held') return { ...goOn(world, rollout, [], null), rollout: null };
  if (of(stable.digest)?.state === 'failed')
    return promote(
      world,
      rollout,
      `version ${stable.version} serves nowhere, so there is nothing to compare`,
      bySystem,
    );
  return enter(world, rollout, policy.shadow ? 'shadowing' : 'shifting');
}

/** The first stage that counts. `said`: by whom and how, where a person wants it. */
export function enter(
  world: RolloutWorld,
  rollout: RolloutRecord,
  state: 'shadowing' | 'shifting',
  said?: { words: string; cause: Cause },
): RolloutPlan {
  const { policy, baseline, candidate } = rollout;
  const share = state === 'shadowing' ? 0 : firstShare(policy, baseline?.requestsPerMinute ?? 0);
  const what =
    state === 'shadowing'
      ? `version ${candidate.version} gets copies of requests from now on`
      : `version ${candidate.version} proved itself and gets ${percent(share)} from now on`;
  const reason = said ? `${said.words}; ${what}` : what;
  const entered = { ...atShare(world, rollout, state, share), reason };
  const event = eventOf(state === 'shadowing' ? 'stage' : 'step', reason, said?.cause ?? bySystem);
  return goOn(world, entered, [event], 0);
}

function waitForIt(
  world: RolloutWorld,
  rollout: RolloutRecord,
  deployment: TrafficDeployment | undefined,
): RolloutPlan {
  const { version } = rollout.candidate;
  const leftMs = rollout.verifyingSince.getTime() + rollout.policy.verifyMs - world.now.getTime();
  const state = deployment ? (deployment.reason ?? `it is ${deployment.state}`) : 'it is not deployed yet';
  if (leftMs <= 0)
    return abort(world, rollout, 'timeout', `version ${version} was not ready within verifyMs: ${state}`, bySystem);
  const reason = `version ${version} is not ready everywhere yet: ${state}`;
  const changed = reason !== rollout.reason;
  return {
    ...goOn(world, { ...rollout, reason }, [], Math.min(leftMs, longestWaitMs)),
    ...(changed ? {} : { rollout: null }),
  };
}

/** Nothing is to be written. */
export const isQuiet = ({ rollout, force, quarantine, events }: RolloutPlan, { sight }: RolloutWorld): boolean =>
  rollout === null && quarantine === null && events.length === 0 && canonicalJson(force) === canonicalJson(sight.force);
