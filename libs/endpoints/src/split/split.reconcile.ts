import { digestOf, type Route } from '@perch/contracts';
import { routingTableDocument } from '@perch/fleet';
import type { Tx } from '@perch/platform/database';
import type { EndpointsStore } from '../endpoints.store.ts';
import { type ChangedRoute, routeFault } from '../route/routing-table.plan.ts';
import type { SplitDue } from './split.store.ts';
import { compileSplit } from './split-route.plan.ts';
import { barePrefix, namesIn } from './split-target.plan.ts';

export interface DueSplits {
  /** Looked at now. */
  due: SplitDue[];
  /** Those whose route differs from what is published; null: to be taken out. */
  changed: ChangedRoute[];
  /** Endpoints that the published routes of these splits have targets of. */
  owners: string[];
}

/**
 * Compiles the splits that changed and those that changed routes of endpoints concern, from the very routes that the next
 * table will hold. Called under the lock of the table, so that in every table the targets of splits are among those of
 * their endpoints: whatever an endpoint gives up leaves its splits in the same revision. Costs one query without any.
 */
export async function compileDue(
  tx: Tx,
  { splits, fleet }: EndpointsStore,
  endpoints: readonly ChangedRoute[],
  servers: ReadonlySet<string>,
): Promise<DueSplits> {
  const due = await splits.due(tx, endpoints.map(({ endpoint }) => endpoint)); // biome-ignore format: one row reads better
  const alone = due.filter(({ own }) => !own);
  if (alone.length === 0) return { due, changed: [], owners: [] };
  const routes = await nextRoutes(tx, splits, alone, endpoints, servers);
  const names = alone.map(({ name }) => name);
  const published = await fleet.documents.entriesOf(tx, routingTableDocument, 'endpoints', names);
  const before = new Map(published.map((entry) => [entry.key, entry]));
  const changed = alone.map(({ name, spec }): ChangedRoute => {
    const route = spec && compileSplit(spec, routes).route;
    return { endpoint: name, route, digest: route && digestOf(route) };
  });
  const owners = alone.flatMap(({ name }) => ((before.get(name)?.value ?? null) as Route | null)?.targets ?? []);
  return {
    due,
    changed: changed.filter(({ endpoint, digest }) => digest !== (before.get(endpoint)?.digest ?? null)),
    owners: [...new Set(owners.flatMap(({ endpoint }) => endpoint ?? []))],
  };
}

/** What the next table will hold of the endpoints these splits are of. */
async function nextRoutes(
  tx: Tx,
  splits: EndpointsStore['splits'],
  alone: readonly SplitDue[],
  endpoints: readonly ChangedRoute[],
  servers: ReadonlySet<string>,
): Promise<Map<string, Route>> {
  const members = alone.flatMap(({ spec }) => spec?.targets?.flatMap(namesIn) ?? []);
  const prefixes = alone.flatMap(({ spec }) => (spec?.targetPrefix ? [barePrefix(spec.targetPrefix)] : []));
  const routes = await splits.publishedRoutes(tx, members, prefixes);
  for (const { endpoint, route } of endpoints) {
    if (route === null) routes.delete(endpoint);
    else if (routeFault(route, servers) === undefined) routes.set(endpoint, route);
  }
  return routes;
}
