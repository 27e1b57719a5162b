import { canonicalJson, type Route, type WhyStep } from '@perch/contracts';
import { correctModule } from './why-deployment.plan.ts';
import { okStep, splitNaming, type WhyDeployment, type WhyFacts, type WhyRouter } from './why-facts.ts';
import { trialTrafficStep } from './why-traffic.plan.ts';

/** From the ready deployment to its traffic: the table, each router that matters, the share. */
export function routerSteps(facts: WhyFacts, deployment: WhyDeployment, version: number): WhyStep[] {
  const route = routeStep(facts, deployment);
  if (route.state === 'failed' || !isRouted(facts.published.route, deployment.id)) return [route];
  return [route, ...routersOf(facts, deployment), trafficStep(facts, deployment, version)];
}

const isRouted = (route: Route | null, deployment: string) =>
  (route?.targets ?? []).some((target) => target.deployment === deployment);

function routeStep({ wantedRoute, published }: WhyFacts, { id, state }: WhyDeployment): WhyStep {
  const revision = `revision ${published.since}`;
  if (isRouted(published.route, id))
    return okStep('route', `the routing table holds it (the endpoint's route is of ${revision})`);
  const stale = canonicalJson(wantedRoute ?? null) !== canonicalJson(published.route ?? null);
  const at = { step: 'route', since: null } as const;
  if (isRouted(wantedRoute, id) || (stale && state === 'ready'))
    return {
      ...at,
      state: 'waiting',
      message: 'the routing table with it is not published yet',
      whatToDo:
        'this takes a second; if it stays, look at the log of the control plane: a route that contradicts itself is refused',
    };
  return {
    ...at,
    state: 'waiting',
    message: 'it enters the routing table when its deployment is ready',
    whatToDo: null,
  };
}

/** One step for those that follow, and one for each router that does not serve it as the table says. */
function routersOf({ name, published, routers, lineage }: WhyFacts, deployment: WhyDeployment): WhyStep[] {
  const live = routers.filter((router) => router.live);
  if (live.length === 0)
    return [
      {
        step: 'router',
        state: 'waiting',
        message: 'no router is live',
        since: null,
        whatToDo: 'start a router, or look after those there are ("perch fleet routers")',
      },
    ];
  const faults = live.flatMap((router) => {
    const fault = routerFault(router, published.since, lineage, { ...deployment, endpoint: name });
    return fault ? [{ step: 'router', since: router.lastSeenAt, ...fault } as WhyStep] : [];
  });
  const fine = live.length - faults.length;
  return [...(fine > 0 ? [okStep('router', `${fine} of ${live.length} live routers serve it`)] : []), ...faults];
}

function routerFault(
  router: WhyRouter,
  since: number | null,
  lineage: string,
  { id, module, endpoint }: WhyDeployment & { endpoint: string },
) {
  const { name, problems, loading = {}, held, revision } = router;
  const problem = problems[id];
  if (problem !== undefined)
    return {
      state: 'failed' as const,
      message: `router ${name} cannot serve it${module ? ` (${module})` : ''}: ${problem}`,
      whatToDo: module ? correctModule(endpoint, module) : 'correct the processing of the endpoint',
    };
  if (loading[id] !== undefined)
    return {
      state: 'waiting' as const,
      message: `router ${name}: ${loading[id]}; what served before goes on there`,
      whatToDo: null,
    };
  if (held)
    return {
      state: 'waiting' as const,
      message: `router ${name} holds back an unconfirmed table`,
      whatToDo: 'after a restore of the database: look at what would go, then "perch fleet confirm"',
    };
  if (router.lineage === lineage && revision !== null && revision >= (since ?? 0)) return undefined;
  return {
    state: 'waiting' as const,
    message: `router ${name} follows revision ${revision ?? 'none'}, the route is of revision ${since}`,
    whatToDo: 'this takes a second; if it stays, look at the log of the router',
  };
}

function trafficStep(facts: WhyFacts, deployment: WhyDeployment, version: number): WhyStep {
  const { spec, published, name } = facts;
  const { id } = deployment;
  const share = published.route?.arms.find((arm) => arm.deployment === id)?.share ?? 0;
  if (share > 0) return okStep('traffic', `it gets ${Math.round(share * 10_000) / 100} % of the traffic`);
  const split = splitNaming(facts, version);
  if (split) return okStep('traffic', `split ${split.name} sends to it; under the name ${name} it has no share`);
  const { mode } = spec!.traffic;
  const versionOf = new Map(published.route?.targets.map((target) => [target.deployment, target.version]));
  const others = (published.route?.arms ?? []).map((arm) => versionOf.get(arm.deployment)).join(', ');
  const trial = trialTrafficStep(facts, deployment, others);
  if (trial) return trial;
  return {
    step: 'traffic',
    state: 'failed',
    message:
      mode === 'weighted'
        ? `it is ready and its weight is 0: version ${others} gets the traffic; requests that name version ${version} reach it`
        : `it is ready and version ${others} takes all traffic (mode ${mode}); requests that name version ${version} reach it`,
    since: null,
    whatToDo: `"perch endpoint update ${name}" with weights, or pin it: /serve/${name}/${version}`,
  };
}
