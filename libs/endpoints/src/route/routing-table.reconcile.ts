import { Inject, Injectable } from '@nestjs/common';
import type { Route } from '@perch/contracts';
import { type Entry, planEntries, routingTableDocument } from '@perch/fleet';
import { Coalescing, type CounterMetric, LOGGER, type Logger, Metrics, pause } from '@perch/platform';
import { Transactions, type Tx } from '@perch/platform/database';
import { EndpointsStore } from '../endpoints.store.ts';
import { duePipelines } from '../pipeline/pipeline.reconcile.ts';
import { KEYS, type KeySource } from '../resolve/version.source.ts';
import { compileDue } from '../split/split.reconcile.ts';
import { type ChangedRoute, keyEntries, planRoutes, type RouteChanges, serverEntries } from './routing-table.plan.ts';

/** Changes that come so close together make one table. */
const coalesceMs = 50;
/** While changes never end: each table costs every router a patch and an acknowledgement. */
const mostCoalesceMs = 400;

/** Publishes the routing table when it changed. Cost: the changed routes, plus one digest an endpoint. */
@Injectable()
export class RoutingTableReconcile {
  private readonly coalescing = new Coalescing(coalesceMs, mostCoalesceMs);
  private readonly published: CounterMetric<'outcome'>;
  private lastLooked = '';

  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    @Inject(KEYS) private readonly keys: KeySource,
    @Inject(LOGGER) private readonly logger: Logger,
    metrics: Metrics,
  ) {
    this.published = metrics.counter('perch_routing_tables_total', 'Routing tables published, by outcome.', [
      'outcome',
    ]);
  }

  /** The revision it published, or null when nothing changed. */
  async publish(signal?: AbortSignal): Promise<number | null> {
    await pause(this.coalescing.waitMs(routingTableDocument, performance.now()), signal);
    const revision = await this.transactions.run((tx) => this.publishIn(tx));
    this.published.add({ outcome: revision === null ? 'unchanged' : 'published' });
    if (revision !== null) this.coalescing.note(routingTableDocument, performance.now());
    return revision;
  }

  /** Some splits, round and round, are compiled again though nothing asks for it: this heals what no change told of. */
  async lookAgain(most: number): Promise<void> {
    const names = await this.stores.splits.lookAgain(this.transactions.manager, this.lastLooked, most);
    this.lastLooked = names.length < most ? '' : names.at(-1)!;
  }

  private async publishIn(tx: Tx): Promise<number | null> {
    const { documents, placements } = this.stores.fleet;
    const known = await documents.lock(tx, routingTableDocument);
    const changed = await this.stores.deployments.changedRoutes(tx, routingTableDocument);
    const servers = await placements.tableServers(tx);
    const routes = await this.planRoutes(tx, changed, new Set(servers.map(({ id }) => id)));
    const changes = [
      ...routes.entries,
      ...(await this.planSection(tx, 'servers', serverEntries(servers))),
      ...(await this.planSection(tx, 'keys', keyEntries(await this.keys.inferenceKeys(tx)))),
    ];
    if (changes.length === 0 && known > 0) return null;
    const revision = await documents.publish(tx, routingTableDocument, changes);
    await placements.markRouted(tx, revision, routes.routed, routes.unrouted);
    return revision;
  }

  private async planRoutes(
    tx: Tx,
    endpoints: readonly ChangedRoute[],
    servers: ReadonlySet<string>,
  ): Promise<RouteChanges> {
    const { documents } = this.stores.fleet;
    const splits = await compileDue(tx, this.stores, endpoints, servers);
    const pipelines = await duePipelines(tx, this.stores);
    const changed = [...endpoints, ...splits.changed, ...pipelines.changed];
    const keys = [...changed.map(({ endpoint }) => endpoint), ...splits.due.map(({ name }) => name), ...splits.owners];
    const published = await documents.entriesOf(tx, routingTableDocument, 'endpoints', keys);
    const ids = published.flatMap(({ value, unmeant }) => [
      ...unmeant,
      ...((value as Route | null)?.targets ?? []).map(({ deployment }) => deployment),
    ]);
    const plan = planRoutes(changed, published, await this.stores.deployments.states(tx, ids), servers);
    for (const { endpoint, fault } of plan.refused) {
      this.published.add({ outcome: 'route_refused' });
      this.logger.error('route refused', { endpoint, fault });
    }
    const refused = plan.refused.map(({ endpoint }) => endpoint);
    await this.stores.splits.markRouted(tx, splits.due, refused);
    await this.stores.pipelines.markRouted(tx, pipelines.due);
    return plan;
  }

  private async planSection(tx: Tx, section: string, wanted: Entry[]): Promise<Entry[]> {
    const published = await this.stores.fleet.documents.entries(tx, routingTableDocument, section);
    return planEntries(published, wanted, () => true);
  }
}
