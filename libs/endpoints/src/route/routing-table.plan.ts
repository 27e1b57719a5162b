import type { DeploymentState, Route, RoutingTable, TableKey, TableServer } from '@perch/contracts';
import { type Entry, entryOf, type Pair } from '@perch/fleet';

export interface ChangedRoute {
  endpoint: string;
  /** Null: the endpoint is gone. */
  route: Route | null;
  digest: string | null;
}

const pairsOf = (route: Route | null): Pair[] =>
  (route?.targets ?? []).flatMap(({ deployment, servers }) => servers.map((server) => ({ deployment, server })));
const pairText = ({ deployment, server }: Pair) => `${deployment} ${server}`;
const routeOf = (entry: Entry | undefined) => (entry?.value ?? null) as Route | null;
const deploymentsOf = (route: Route | null): string[] => (route?.targets ?? []).map(({ deployment }) => deployment);

/** Why a route may not be published, or undefined: every target has known servers (or no model), every arm a target, shares add to 1. */
export function routeFault(route: Route, servers: ReadonlySet<string>): string | undefined {
  const targets = new Set(deploymentsOf(route));
  const lost = route.targets.find(
    ({ servers: own, modelless }) => (own.length === 0 && !modelless) || own.some((id) => !servers.has(id)),
  );
  if (lost) return `deployment ${lost.deployment} has no known server`;
  if (targets.size !== route.targets.length) return 'a deployment stands in it twice';
  const arm = route.arms.find(({ deployment }) => !targets.has(deployment));
  if (arm) return `arm ${arm.deployment} has no target`;
  if (route.targets.length === 0) return undefined;
  const sum = route.arms.reduce((total, { share }) => total + share, 0);
  return Math.abs(sum - 1) > 1e-9 ? `the shares add to ${sum}` : undefined;
}

export interface RouteChanges {
  entries: Entry[];
  routed: Pair[];
  unrouted: Pair[];
  /** Routes left as they were published, because they must not be. */
  refused: { endpoint: string; fault: string }[];
}

/**
 * Members of the section `endpoints` to write. `published`: as last published, the changed ones, those that lost a
 * deployment without a decision, and whatever else holds deployments of these under another name (splits, and the
 * endpoints that splits are of). A deployment that vanishes is meant to when it is draining or retired; one that another
 * name still holds does not vanish, nor does a router lose the way to its servers.
 */
export function planRoutes(
  changed: readonly ChangedRoute[],
  published: readonly Entry[],
  states: ReadonlyMap<string, DeploymentState>,
  servers: ReadonlySet<string>,
): RouteChanges {
  const faults = changed.map(({ route }) => route && routeFault(route, servers));
  const taken = changed.filter((_, at) => !faults[at]);
  const names = new Set(changed.map(({ endpoint }) => endpoint));
  const takenNames = new Set(taken.map(({ endpoint }) => endpoint));
  const before = new Map(published.map((entry) => [entry.key, entry]));
  const stays = published.filter(({ key }) => !takenNames.has(key));
  const after = [...taken.map(({ route }) => route), ...stays.map(routeOf)];
  const held = new Set(after.flatMap(pairsOf).map(pairText));
  const heldDeployments = new Set(after.flatMap(deploymentsOf));
  const decided = (id: string) => heldDeployments.has(id) || ['draining', 'retired'].includes(states.get(id) ?? '');
  const plan: RouteChanges = { entries: [], routed: [], unrouted: [], refused: [] };
  for (const { endpoint, route, digest } of taken) {
    const old = before.get(endpoint);
    const gone = [...(old?.unmeant ?? []), ...deploymentsOf(routeOf(old))];
    const unmeant = [...new Set(gone)].filter((id) => !decided(id));
    plan.entries.push({ section: 'endpoints', key: endpoint, value: route, digest, unmeant });
    plan.routed.push(...pairsOf(route));
    plan.unrouted.push(...pairsOf(routeOf(old)).filter((pair) => !held.has(pairText(pair))));
  }
  for (const entry of stays.filter(({ key }) => !names.has(key))) {
    const unmeant = entry.unmeant.filter((id) => !decided(id));
    if (unmeant.length < entry.unmeant.length) plan.entries.push({ ...entry, unmeant });
  }
  plan.refused = changed.flatMap(({ endpoint }, at) => (faults[at] ? [{ endpoint, fault: faults[at] }] : []));
  return plan;
}

export interface TableSnapshot {
  routes: Readonly<Record<string, Route>>;
  servers: readonly { id: string; http: string; grpc: string }[];
  keys: readonly { id: string; hash: string; endpoints: string[] }[];
}

export const serverEntries = (servers: TableSnapshot['servers']): Entry[] =>
  servers.map(({ id, http, grpc }) => entryOf('servers', id, { http, grpc } satisfies TableServer));
export const keyEntries = (keys: TableSnapshot['keys']): Entry[] =>
  keys.map(({ id, hash, endpoints }) => entryOf('keys', id, { hash, endpoints } satisfies TableKey));

/** The sections of a whole table; what is published is the difference to the last one, which comes to the same. */
export function buildRoutingTable({
  routes,
  servers,
  keys,
}: TableSnapshot): Pick<RoutingTable, 'endpoints' | 'servers' | 'keys'> {
  const known = new Set(servers.map(({ id }) => id));
  const section = <T>(entries: readonly Entry[]) =>
    Object.fromEntries(entries.map(({ key, value }) => [key, value as T]));
  return {
    endpoints: Object.fromEntries(Object.entries(routes).filter(([, route]) => routeFault(route, known) === undefined)),
    servers: section<TableServer>(serverEntries(servers)),
    keys: section<TableKey>(keyEntries(keys)),
  };
}
