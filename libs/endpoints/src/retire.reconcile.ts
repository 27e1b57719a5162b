import { Inject, Injectable } from '@nestjs/common';
import { systemActor } from '@perch/contracts';
import {
  FLEET_OPTIONS,
  type FleetOptions,
  Installation,
  routingTableDocument,
  theOnlyKey,
  unloadObstacle,
  work,
} from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { EndpointsStore } from './endpoints.store.ts';

type Leaving = Awaited<ReturnType<EndpointsStore['fleet']['placements']['leaving']>>;

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
      const free = await this.freeOf(tx, endpoint, leaving);
      await fleet.placements.release(tx, free);
      await this.retireDrained(tx, endpoint);
      for (const server of [...new Set(free.map(({ server }) => server))].sort())
        await this.workStore.enqueue(tx, work.server, server);
      if (free.length > 0) await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
      return free.length < leaving.length;
    });
  }

  private async freeOf(tx: Tx, endpoint: string, leaving: Leaving): Promise<Leaving> {
    const { deployments, fleet, endpoints, splits } = this.stores;
    const { lineage } = await Installation.read(tx);
    const routers = (await fleet.routers.list(tx)).map(({ name, report, quiet_ms }) => ({
      name,
      report,
      quietMs: Number(quiet_ms),
    }));
    const states = await deployments.states(
      tx,
      leaving.map(({ deployment }) => deployment),
    );
    const own = (await endpoints.get(tx, endpoint))?.spec?.limits.timeoutMs ?? 0;
    // A request by the name of a split may take as long as the slowest of its members allows.
    const timeoutMs = leaving.length === 0 ? own : Math.max(own, await splits.longestTimeoutMs(tx, endpoint));
    return leaving.filter((wish) => {
      const { server, ...whole } = wish;
      const what = states.get(wish.deployment) === 'draining' ? whole : { ...whole, server };
      return unloadObstacle(what, routers, lineage, this.options.routerGraceMs, timeoutMs) === undefined;
    });
  }

  private async retireDrained(tx: Tx, endpoint: string): Promise<void> {
    for (const { id, version } of await this.stores.deployments.drained(tx, endpoint)) {
      await this.stores.deployments.setState(tx, id, 'retired', null);
      await this.changes.record(tx, systemActor, 'deployment.retired', endpoint, { deployment: id, version });
    }
  }
}
