import { Injectable } from '@nestjs/common';
import type { Pool, Server, ServerDetail } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { DrainService } from './drain.service.ts';
import { FleetStore } from './fleet.store.ts';
import { describePool, roomView } from './placement/pool.plan.ts';
import { ServerService } from './server.service.ts';
import { describeServerModel } from './server-model.plan.ts';
import { ServerModelStore } from './server-model.store.ts';

/** Pools and single servers as people see them. */
@Injectable()
export class FleetViewService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: FleetStore,
    private readonly servers: ServerService,
    private readonly draining: DrainService,
    private readonly models: ServerModelStore,
  ) {}

  /** In order of their names; a pool is there as soon as a server or an endpoint names it. */
  async pools(): Promise<Pool[]> {
    const { manager } = this.transactions;
    const servers = await this.stores.capacity.all(manager);
    const endpoints = await this.stores.capacity.endpointsByPool(manager);
    const names = [...new Set([...servers.map(({ pool }) => pool), ...endpoints.keys()])].sort();
    return names.map((name) =>
      describePool(
        name,
        servers.filter(({ pool }) => pool === name),
        endpoints.get(name) ?? 0,
      ),
    );
  }

  /** By id or name. Throws `not_found`, or `conflict` when several have the name. */
  async show(key: string): Promise<ServerDetail> {
    const id = await this.draining.idOf(key);
    const server = (await this.servers.list()).find((one) => one.id === id)!;
    return { ...server, ...(await this.detail(this.transactions.manager, server)) };
  }

  private async detail(tx: Tx, server: Server): Promise<Omit<ServerDetail, keyof Server>> {
    const sights = await this.models.ofServer(tx, server.id);
    const behind = (server.observed?.revision ?? -1) < server.desiredRevision;
    const [planned] = await this.stores.capacity.all(tx, server.id);
    return {
      models: sights.map((sight) => describeServerModel(sight, { live: server.live, behind })),
      ...roomView(planned ? [planned] : []),
      failures: await this.stores.capacity.failuresOn(tx, server.id),
    };
  }
}
