import { holdsRemovals, type Route, type RoutingTable } from '@perch/contracts';

/** What is served: the table received, or, while its removals are held, that and what the last trusted one had besides. */
export interface EffectiveTable {
  table: RoutingTable;
  /** Removals that the received table asked for are held. */
  held: boolean;
  /** Deployments that are served only because their removal is held. */
  heldDeployments: ReadonlySet<string>;
}

const deploymentsOf = (table: RoutingTable): Set<string> => {
  const ids = new Set<string>();
  for (const name in table.endpoints) for (const target of table.endpoints[name]!.targets) ids.add(target.deployment);
  return ids;
};

/**
 * The new route with the old targets it lacks; they keep no share unless the new one has no arm at all: then all
 * of the old split stays, a candidate's trial and its lease with it.
 */
function mergeRoute(before: Route | undefined, next: Route | undefined): Route {
  if (!before || !next) return (next ?? before)!;
  const missing = before.targets.filter((old) => !next.targets.some((one) => one.deployment === old.deployment));
  if (missing.length === 0) return next;
  const { arms, sticky, rollout } = next.arms.some((arm) => arm.share > 0) ? next : before;
  return { ...next, arms, sticky, rollout, targets: [...next.targets, ...missing] };
}

/** "I was told nothing" never means "I was told: nothing": see `holdsRemovals`. `trusted` is the last table that was not held. */
export function decideEffective(trusted: RoutingTable | undefined, next: RoutingTable): EffectiveTable {
  if (!trusted) return { table: next, held: false, heldDeployments: new Set() };
  const served = deploymentsOf(trusted);
  const wanted = deploymentsOf(next);
  const removed = new Set([...served].filter((id) => !wanted.has(id)));
  const keysGone = Object.keys(trusted.keys).some((id) => !(id in next.keys));
  const otherLineage = trusted.lineage !== next.lineage;
  const counts = { served: served.size, removed: removed.size };
  const held = holdsRemovals(trusted, next, counts) || (otherLineage && !next.confirmed && keysGone);
  if (!held) return { table: next, held: false, heldDeployments: new Set() };
  const endpoints: RoutingTable['endpoints'] = {};
  for (const name of new Set([...Object.keys(trusted.endpoints), ...Object.keys(next.endpoints)]))
    endpoints[name] = mergeRoute(trusted.endpoints[name], next.endpoints[name]);
  const table = {
    ...next,
    endpoints,
    servers: { ...trusted.servers, ...next.servers },
    keys: { ...trusted.keys, ...next.keys },
  };
  return { table, held: true, heldDeployments: removed };
}
