import type { Presence } from './server.store.ts';

export interface PlannedServer {
  id: string;
  presence: Presence;
  /** Models placed on it now, by anybody. */
  models: number;
}

export interface PlannedDeployment {
  id: string;
  tritonModel: string;
  replicas: number;
}

export interface CurrentPlacement {
  deployment: string;
  server: string;
  tritonModel: string;
  /** The server serves it now. */
  ready: boolean;
  /** On its way out: the model is still there, but the placement counts no more. */
  leaving?: boolean;
}

export interface PlacementPlan {
  add: { deployment: string; server: string }[];
  leave: { deployment: string; server: string }[];
  /** Why a deployment has fewer servers than it wants, by deployment. */
  short: Map<string, string>;
}

/**
 * Which servers are to hold which deployments. `servers`: those of the pool, without lost ones. Moves as little as can
 * be: what is placed stays, except on servers that are not among `servers` and on surplus ones, and even those are left
 * only when enough others are ready: a lost server may still answer, and is better than none. New replicas go to live
 * servers: first those it is just leaving, then those that hold the same model anyway, then those with the fewest models, then by id.
 */
export function planPlacement(
  deployments: readonly PlannedDeployment[],
  servers: readonly PlannedServer[],
  current: readonly CurrentPlacement[],
): PlacementPlan {
  const load = new Map(servers.map(({ id, models }) => [id, models]));
  const plan: PlacementPlan = { add: [], leave: [], short: new Map() };
  const holds = new Set(current.map(({ server, tritonModel }) => `${server} ${tritonModel}`));
  const own = new Set(current.map(({ server, deployment }) => `${server} ${deployment}`));
  const worthOf = (server: string, { id, tritonModel }: PlannedDeployment) =>
    own.has(`${server} ${id}`) ? 2 : holds.has(`${server} ${tritonModel}`) ? 1 : 0;
  for (const deployment of deployments) {
    const placed = current.filter((placement) => placement.deployment === deployment.id && !placement.leaving);
    const usable = placed.filter(({ server }) => load.has(server));
    const keep = [...usable].sort(byWorth(servers)).slice(0, deployment.replicas);
    const kept = new Set(keep.map(({ server }) => server));
    const free = servers
      .filter(({ id, presence }) => presence === 'live' && !usable.some(({ server }) => server === id))
      .map(({ id }) => ({ id, load: load.get(id)!, holds: worthOf(id, deployment) }))
      .sort((a, b) => b.holds - a.holds || a.load - b.load || (a.id < b.id ? -1 : 1))
      .slice(0, deployment.replicas - keep.length);
    for (const { id } of free) {
      plan.add.push({ deployment: deployment.id, server: id });
      load.set(id, load.get(id)! + 1);
      holds.add(`${id} ${deployment.tritonModel}`);
    }
    const enough = Math.max(1, Math.min(deployment.replicas, keep.length + free.length));
    if (keep.filter(({ ready }) => ready).length >= enough)
      for (const { server } of placed) if (!kept.has(server)) plan.leave.push({ deployment: deployment.id, server });
    const reason = shortage(deployment.replicas, keep.length + free.length, servers);
    if (reason) plan.short.set(deployment.id, reason);
  }
  return plan;
}

/** Ready ones are worth most, then live ones, then by id. */
const byWorth = (servers: readonly PlannedServer[]) => {
  const live = new Set(servers.filter(({ presence }) => presence === 'live').map(({ id }) => id));
  return (a: CurrentPlacement, b: CurrentPlacement) =>
    Number(b.ready) - Number(a.ready) ||
    Number(live.has(b.server)) - Number(live.has(a.server)) ||
    (a.server < b.server ? -1 : 1);
};

function shortage(replicas: number, placed: number, servers: readonly PlannedServer[]): string | undefined {
  if (placed >= replicas) return undefined;
  const live = servers.filter(({ presence }) => presence === 'live').length;
  if (placed === 0 && live === 0) return 'no live server in its pool';
  return `wants ${replicas} servers, its pool has ${live} live`;
}
