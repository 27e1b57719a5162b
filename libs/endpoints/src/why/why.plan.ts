import type { EndpointWhy, Route, WhyStep } from '@perch/contracts';
import type { PlacementSight } from '@perch/fleet';
import { splitSource } from '../external-endpoint.plan.ts';
import { serverWait } from './server-wait.decide.ts';
import { deploymentOf, deploymentStep, placementStep } from './why-deployment.plan.ts';
import { okStep, type WhyFacts } from './why-facts.ts';
import { routerSteps } from './why-route.plan.ts';
import { ruleStep } from './why-rule.plan.ts';
import { trialRuleStep } from './why-traffic.plan.ts';

/** The version that a person means who names none: the fixed one, else the newest that is not archived. */
export function askedVersion(facts: Pick<WhyFacts, 'spec' | 'versions'>): number | null {
  const fixed = facts.spec?.model.version;
  if (fixed !== undefined) return fixed;
  const numbers = facts.versions.filter(({ state }) => state !== 'archived').map(({ number }) => number);
  const all = numbers.length > 0 ? numbers : facts.versions.map(({ number }) => number);
  return all.length > 0 ? Math.max(...all) : null;
}

/** Walks from the name to the traffic; ends at the first link that holds everything after it back. */
export function planWhy(facts: WhyFacts, asked: number | null): EndpointWhy {
  const version = asked ?? askedVersion(facts);
  const chain = chainOf(facts, version);
  const share = version === null ? 0 : shareOf(facts.published.route, version);
  const following = chain.some(({ step, state }) => step === 'router' && state === 'ok');
  const served = following && chain.some(({ step, state }) => step === 'traffic' && state === 'ok');
  return { endpoint: facts.name, version, served, summary: summaryOf(facts, version, chain, served, share), chain };
}

function chainOf(facts: WhyFacts, version: number | null): WhyStep[] {
  const chain: WhyStep[] = [endpointStep(facts)];
  const broken = () => chain.at(-1)!.state === 'failed';
  if (broken()) return chain;
  chain.push(modelStep(facts));
  if (broken() || version === null) return chain;
  chain.push(versionStep(facts, version));
  if (broken() || chain.at(-1)!.state === 'waiting') return chain;
  const deployment = deploymentOf(facts, version);
  const rule = trialRuleStep(facts, version, deployment) ?? ruleStep(facts, version);
  const spare = rule.state === 'failed' && shareOf(facts.published.route, version) > 0;
  chain.push(spare ? { ...rule, message: `${rule.message}; it serves on until one that is wanted is ready` } : rule);
  if (broken() && !spare) return chain;
  chain.push(deploymentStep(facts, deployment));
  if (!deployment?.deployable) return chain;
  const placements = facts.placements.filter((sight) => sight.deployment === deployment.id);
  chain.push(placementStep(facts, deployment, placements));
  for (const sight of placements) if (sight.state === 'active') chain.push({ step: 'server', ...stepOf(sight) });
  return [...chain, ...routerSteps(facts, deployment, version)];
}

const stepOf = (sight: PlacementSight): Omit<WhyStep, 'step'> => {
  const { waitsFor: _waitsFor, ...step } = serverWait(sight);
  return step;
};

function endpointStep({ name, spec, generation, changedAt, changedBy, status }: WhyFacts): WhyStep {
  const at = { step: 'endpoint', since: changedAt } as const;
  if (spec === null)
    return {
      ...at,
      state: 'failed',
      message: `endpoint ${name} was removed by ${changedBy}`,
      whatToDo: `bring it back with "perch endpoint rollback ${name} --to ${generation - 1}"`,
    };
  if (spec.stopped)
    return {
      ...at,
      state: 'failed',
      message: `endpoint ${name} was stopped by ${changedBy}`,
      whatToDo: `"perch endpoint start ${name}"`,
    };
  if (status.generationSeen < generation || status.reason === 'new')
    return {
      ...at,
      state: 'waiting',
      message: `generation ${generation} of endpoint ${name} was not looked at yet`,
      whatToDo: 'this takes a second; if it stays, look at the log of the control plane',
    };
  return okStep('endpoint', `endpoint ${name} exists (generation ${generation})`, changedAt);
}

function modelStep({ spec, versions }: WhyFacts): WhyStep {
  const { project, name, source, none } = spec!.model;
  if (none) return okStep('model', 'it has none: its module does all the work, whose number is the version');
  const model = source ?? `${project}/${name}`;
  if (versions.length > 0) return okStep('model', `model ${model} has ${versions.length} versions`);
  if (source !== undefined) return noSource(source);
  return {
    step: 'model',
    state: 'failed',
    message: `model ${model} does not exist`,
    since: null,
    whatToDo: `"perch model upload ${model} FILE --publish", or correct the name with "perch endpoint update"`,
  };
}

function noSource(source: string): WhyStep {
  const { scope, model } = splitSource(source);
  return {
    step: 'model',
    state: 'failed',
    message: `no external server ${scope}, or of a pool of that name, holds ${model}`,
    since: null,
    whatToDo: 'load it in that Triton, or look whether we reach it: "perch fleet servers"',
  };
}

function versionStep({ spec, versions }: WhyFacts, version: number): WhyStep {
  const model = `${spec!.model.project}/${spec!.model.name}`;
  const found = versions.find(({ number }) => number === version);
  const at = { step: 'version', since: null } as const;
  if (!found) {
    const has = versions.map(({ number }) => number).sort((a, b) => b - a);
    return {
      ...at,
      state: 'failed',
      message: `version ${version} of ${model} does not exist; there are ${has.slice(0, 8).join(', ')}`,
      whatToDo: 'a number that was given once is not given again: upload a new version',
    };
  }
  if (found.state === 'uploading')
    return {
      ...at,
      state: 'waiting',
      message: `version ${version} is still being uploaded`,
      whatToDo: 'run the same upload again: it goes on where it was cut off',
    };
  if (found.state === 'archived')
    return {
      ...at,
      state: 'failed',
      message: `version ${version} is archived`,
      whatToDo: `"perch model restore ${model}@${version}", then publish it`,
    };
  return okStep('version', `version ${version} is ${found.state === 'draft' ? 'a draft' : 'published'}`);
}

const shareOf = (route: Route | null, version: number): number => {
  const own = new Set(
    route?.targets.filter((target) => target.version === version).map(({ deployment }) => deployment),
  );
  return (route?.arms ?? []).filter(({ deployment }) => own.has(deployment)).reduce((sum, { share }) => sum + share, 0);
};

function summaryOf(
  { name, spec }: WhyFacts,
  version: number | null,
  chain: readonly WhyStep[],
  served: boolean,
  share: number,
): string {
  const trouble = chain.filter(({ state }) => state !== 'ok');
  const which = version === null ? `endpoint ${name}` : `version ${version} of endpoint ${name}`;
  if (served) {
    const percent = Math.round(share * 10_000) / 100;
    const but = trouble.length > 0 ? `; but ${trouble[0]!.message}` : '';
    if (share === 0) return `${which} is served: ${chain.find(({ step }) => step === 'traffic')!.message}${but}`;
    return `${which} is served and gets ${percent} % of the traffic${but}`;
  }
  // what stands deepest of those that cannot come about by themselves is the cause; "failed" above it only repeats it
  const cause = trouble.find(({ step, state }) => state === 'failed' && step === 'server') ?? trouble[0];
  if (cause) return `${which} is not served: ${cause.message}`;
  return version === null && spec ? `${which} serves nothing: its model has no version` : `${which} is not served`;
}
