import type { WhyStep } from '@perch/contracts';
import type { TrafficForce } from '../traffic/traffic.plan.ts';
import { okStep, type WhyDeployment, type WhyFacts } from './why-facts.ts';

/** What rollouts say about a progressive endpoint. */
export interface WhyTraffic {
  force: TrafficForce;
  /** Digests of its deployments by their ids. */
  digests: ReadonlyMap<string, string>;
  refused: readonly { version: number; digest: string; reason: string }[];
}

export type TrialRole = 'stable' | 'candidate' | 'kept';

/** The part that a deployment has in the rollouts of a progressive endpoint; undefined: none. */
export function trialRole({ traffic }: WhyFacts, deployment: WhyDeployment | undefined): TrialRole | undefined {
  const digest = deployment && traffic?.digests.get(deployment.id);
  if (!traffic || digest === undefined) return undefined;
  if (digest === traffic.force.stable) return 'stable';
  if (digest === traffic.force.candidate) return 'candidate';
  return traffic.force.keep.includes(digest) ? 'kept' : undefined;
}

const roleWords: Record<TrialRole, string> = {
  stable: 'it is the stable one of its rollouts',
  candidate: 'it is the candidate of a rollout',
  kept: 'it stays loaded for a rollback',
};

/** What stands in the place of the rule's word; undefined: nothing does. */
export function trialRuleStep(
  facts: WhyFacts,
  version: number,
  deployment: WhyDeployment | undefined,
): WhyStep | undefined {
  const { traffic, name } = facts;
  const role = trialRole(facts, deployment);
  if (role) return okStep('rule', roleWords[role]);
  if (deployment || !traffic) return undefined;
  const at = { step: 'rule', state: 'failed', since: null } as const;
  const refused = traffic.refused.find((one) => one.version === version);
  if (refused)
    return {
      ...at,
      message: `a rollout refused it: ${refused.reason}`,
      whatToDo: `upload a better version, or release it: "perch endpoint quarantine ${name} --release ${refused.digest.slice(0, 12)}"`,
    };
  if (traffic.force.held === null) return undefined;
  return {
    ...at,
    message: `automatic updates are held by ${traffic.force.held}`,
    whatToDo: `"perch endpoint resume ${name}"`,
  };
}

/** Of a ready deployment that gets nothing. Undefined: not progressive. */
export function trialTrafficStep(facts: WhyFacts, deployment: WhyDeployment, others: string): WhyStep | undefined {
  const { traffic, name } = facts;
  if (!traffic) return undefined;
  const at = { step: 'traffic', state: 'waiting', since: null } as const;
  const whatToDo = `"perch rollout list --endpoint ${name}" shows its rollouts`;
  switch (trialRole(facts, deployment)) {
    case 'candidate':
      return { ...at, message: `it is on trial and gets nothing yet; version ${others} serves`, whatToDo };
    case 'kept':
      return {
        ...at,
        state: 'failed',
        message: `version ${others} replaced it, and ${roleWords.kept}`,
        whatToDo: `"perch rollout rollback" brings it back; ${whatToDo}`,
      };
    case 'stable':
      return { ...at, message: `version ${others} serves in its place`, whatToDo };
    default:
      return { ...at, message: `it is ready for its trial; version ${others} serves`, whatToDo };
  }
}
