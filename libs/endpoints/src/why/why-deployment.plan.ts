import type { WhyStep } from '@perch/contracts';
import type { PlacementSight } from '@perch/fleet';
import { okStep, type WhyDeployment, type WhyFacts } from './why-facts.ts';

/** Of several deployments of one version: the wanted one is the newest; what serves counts more than what fails. */
export function deploymentOf({ deployments }: WhyFacts, version: number): WhyDeployment | undefined {
  const own = deployments.filter((deployment) => deployment.version === version);
  return own.find(({ state }) => state === 'ready') ?? own.find(({ state }) => state !== 'draining') ?? own[0];
}

/** Whether a deployment was made of it, and how far that is. */
export function deploymentStep(facts: WhyFacts, deployment: WhyDeployment | undefined): WhyStep {
  if (!deployment)
    return {
      step: 'deployment',
      state: 'waiting',
      message: 'no deployment was made of it yet',
      since: null,
      whatToDo: 'this takes a second; if it stays, look at the log of the control plane',
    };
  const { state, reason, since, deployable, module } = deployment;
  const at = { step: 'deployment', since } as const;
  const words = reason ? `: ${reason}` : '';
  if (!deployable)
    return {
      ...at,
      state: 'failed',
      message: `it cannot be deployed${words}`,
      whatToDo:
        'correct the engine settings or the processing of the endpoint, or upload a version whose files fit them',
    };
  if (state === 'ready') return okStep('deployment', `its deployment is ready${module ? ` (${module})` : ''}`, since);
  if (state === 'failed')
    return {
      ...at,
      state: 'failed',
      message: `its deployment failed${words}`,
      whatToDo: whatToDoAbout(facts, deployment),
    };
  return { ...at, state: 'waiting', message: `its deployment is ${state}${words}`, whatToDo: null };
}

const whatToDoAbout = ({ name, routers }: WhyFacts, { id, module }: WhyDeployment) => {
  if (!routers.some(({ problems }) => problems[id] !== undefined)) return 'see what its servers say below';
  return module ? correctModule(name, module) : 'correct the processing of the endpoint: a router could not load it';
};

/** What to do about a module that routers cannot load. */
export const correctModule = (endpoint: string, module: string): string =>
  `correct ${module.split(',')[0]} ("perch processing test", then "perch processing add"), and name its new number: "perch endpoint update ${endpoint} --processing …"`;

/** Whether it has the servers it wants, and why not. */
export function placementStep(
  { spec }: WhyFacts,
  { reason, state, since, modelless }: WhyDeployment,
  placements: readonly PlacementSight[],
): WhyStep {
  if (modelless) return okStep('placement', 'it has no model: its module does all the work, and no server is wanted');
  const { pool, replicas } = spec!.fleet;
  const active = placements.filter((sight) => sight.state === 'active');
  if (active.length >= replicas)
    return okStep('placement', `it has its ${replicas === 1 ? 'server' : `${replicas} servers`} in pool ${pool}`);
  const reasons = state === 'placing' && reason ? `: ${reason}` : '';
  const leaving = placements.length > active.length ? ` (${placements.length - active.length} it is leaving)` : '';
  return {
    step: 'placement',
    state: active.length >= (spec!.fleet.minReplicas ?? 1) ? 'waiting' : 'failed',
    message: `it has ${active.length} of the ${replicas} servers it wants in pool ${pool}${leaving}${reasons}`,
    since,
    whatToDo: `add servers to pool ${pool} or make room on them ("perch fleet servers"), or want fewer replicas`,
  };
}
