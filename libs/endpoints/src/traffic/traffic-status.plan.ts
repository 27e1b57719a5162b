import { type StatusFacts, servesWords, type Verdict } from '../status.plan.ts';
import type { TrafficPlan } from './traffic.plan.ts';

type Sight = StatusFacts['deployments'][number];

/**
 * What a progressive endpoint shows of its trial: who serves, who is tried with how much, what comes next, who holds it.
 * Undefined: nothing that could not be said of any endpoint.
 */
export function trafficVerdict(facts: StatusFacts, { force, wish }: TrafficPlan): Verdict | undefined {
  const find = (digest: string | null | undefined) =>
    facts.deployments.find((one) => digest != null && one.digest === digest);
  const stable = find(force.stable);
  if (!stable) return undefined;
  const candidate = force.candidate === force.stable ? undefined : find(force.candidate);
  if (candidate) return { ...trialVerdict(facts, stable, candidate, force.shadowing), nextVersion: candidate.version };
  if (stable.state !== 'ready') return undefined;
  if (force.held !== null) return heldVerdict(facts, force.held, wish.newest?.digest !== force.stable);
  const newest = find(wish.newest?.digest);
  if (!newest || newest === stable || newest.state !== 'ready') return undefined;
  return trial(`${servesWords(facts.serving)}; ${nameOf(newest, stable)} is ready for its trial`);
}

const trial = (message: string): Verdict => ({ phase: 'progressing', reason: 'rollout', message });

/** Two deployments of one version differ in settings or processing. */
function nameOf({ version, module }: Sight, stable: Sight): string {
  if (version !== stable.version) return `version ${version}`;
  return module && module !== stable.module
    ? `version ${version} with module ${module}`
    : `version ${version} with other settings`;
}

const percent = (share: number) => `${Math.round(share * 10_000) / 100} %`;

function trialVerdict({ short }: StatusFacts, stable: Sight, candidate: Sight, shadowing: boolean): Verdict {
  const name = nameOf(candidate, stable);
  const now = (stable.share ?? 0) > 0 ? `version ${stable.version} serves` : `version ${stable.version} does not serve`;
  const words = candidate.reason ? ` (${candidate.reason})` : '';
  switch (candidate.state) {
    case 'failed': {
      const message = `${name} failed: ${candidate.reason ?? 'no reason was given'}; ${now}`;
      return { phase: 'blocked', reason: 'deployment_failed', message };
    }
    case 'placing':
      return { phase: 'blocked', reason: 'no_server', message: `${name} waits: ${candidate.reason ?? short}; ${now}` };
    case 'ready':
      if (candidate.share) return trial(`${now}; ${name} on trial with ${percent(candidate.share)}`);
      return trial(
        `${now}; ${shadowing ? `${name} is tried with copies of requests` : `${name} is ready for its trial`}`,
      );
    default:
      return trial(`${now}; ${name} is loading${words} for its trial`);
  }
}

function heldVerdict({ spec, serving }: StatusFacts, by: string, newer: boolean): Verdict {
  const words = `automatic updates are held by ${by}; "perch endpoint resume ${spec.name}" lets them go on`;
  return { phase: newer ? 'blocked' : 'ready', reason: 'held', message: `${servesWords(serving)}; ${words}` };
}
