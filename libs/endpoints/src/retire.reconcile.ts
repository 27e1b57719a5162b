import { Inject, Injectable } from '@nestjs/common';
import { systemActor } from '@perch/contracts';
import {
  FLEET_OPTIONS,
  type FleetOptions,
  Installation,
  type RouterFacts,
  routingTableDocument,
  theOnlyKey,
  unloadObstacle,
  work,
} from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { EndpointsStore } from './endpoints.store.ts';

type Leaving = Awaited<ReturnType<EndpointsStore['fleet']['placements']['leaving']>>;

interface Look {
  lineage: string;
  timeoutMs: number;
  routers: RouterFacts[];
}

/** Lets go of what no router can send to any more. */
@Injectable()
export class RetireReconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly workStore: WorkStore,
    @Inject(FLEET_OPTIONS) private readonly options: FleetOptions,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /** True: something is still held back. */
  async retire(endpoint: string): Promise<boolean> {
    const { fleet } = this.stores;
    return this.transactions.run(async (tx) => {
      // No table can be published meanwhile: what the one in force does not hold stays out of it.
      await fleet.documents.lock(tx, routingTableDocument);
      const leaving = await fleet.placements.leaving(tx, endpoint);
      const look = { ...(await this.look(tx, endpoint, leaving.length > 0)), routers: await this.routers(tx) };
      const free = await this.freeOf(tx, leaving, look);
      await fleet.placements.release(tx, free);
      const kept = await this.keptModelless(tx, endpoint, look);
      await this.retireDrained(tx, endpoint, kept);
      for (const server of [...new Set(free.map(({ server }) => server))].sort())
        await this.workStore.enqueue(tx, work.server, server);
      if (free.length > 0) await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
      return free.length < leaving.length || kept.size > 0;
    });
  }

  private async look(tx: Tx, endpoint: string, inSplits: boolean): Promise<Omit<Look, 'routers'>> {
    const { endpoints, splits } = this.stores;
    const { lineage } = await Installation.read(tx);
    const own = (await endpoints.get(tx, endpoint))?.spec?.limits.timeoutMs ?? 0;
    // A request by the name of a split may take as long as the slowest of its members allows.
    const timeoutMs = inSplits ? Math.max(own, await splits.longestTimeoutMs(tx, endpoint)) : own;
    return { lineage, timeoutMs };
  }

  private async routers(tx: Tx): Promise<RouterFacts[]> {
    const rows = await this.stores.fleet.routers.list(tx);
    return rows.map(({ name, report, quiet_ms }) => ({ name, report, quietMs: Number(quiet_ms) }));
  }

  private obstacle(wish: Parameters<typeof unloadObstacle>[0], { lineage, timeoutMs, routers }: Look) {
    return unloadObstacle(wish, routers, lineage, this.options.routerGraceMs, timeoutMs);
  }

  private async freeOf(tx: Tx, leaving: Leaving, look: Look): Promise<Leaving> {
    const states = await this.stores.deployments.states(
      tx,
      leaving.map(({ deployment }) => deployment),
    );
    return leaving.filter((wish) => {
      const { server, ...whole } = wish;
      const what = states.get(wish.deployment) === 'draining' ? whole : { ...whole, server };
      return this.obstacle(what, look) === undefined;
    });
  }

  /** What has no model is on no server; it stays as long as a router may run its module, since it may have to come back. */
  private async keptModelless(tx: Tx, endpoint: string, look: Look): Promise<Set<string>> {
    const ids = await this.stores.deployments.drainingModelless(tx, endpoint);
    if (ids.length === 0) return new Set();
    const { since, held } = await this.stores.fleet.documents.routedSince(tx, endpoint, ids);
    const wish = (deployment: string) => ({
      deployment,
      routedRevision: since,
      unroutedRevision: held.has(deployment) ? null : since,
      unroutedMs: null,
    });
    return new Set(ids.filter((id) => this.obstacle(wish(id), look) !== undefined));
  }

  private async retireDrained(tx: Tx, endpoint: string, kept: ReadonlySet<string>): Promise<void> {
    for (const { id, version } of await this.stores.deployments.drained(tx, endpoint)) {
      if (kept.has(id)) continue;
      await this.stores.deployments.setState(tx, id, 'retired', null);
      await this.changes.record(tx, systemActor, 'deployment.retired', endpoint, { deployment: id, version });
    }
  }
}
