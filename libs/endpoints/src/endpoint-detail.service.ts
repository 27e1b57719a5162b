import { Inject, Injectable } from '@nestjs/common';
import type { Endpoint } from '@perch/contracts';
import {
  FLEET_OPTIONS,
  type FleetOptions,
  Installation,
  type PlacementSight,
  SightStore,
  unloadObstacle,
} from '@perch/fleet';
import { Transactions } from '@perch/platform/database';
import { EndpointService } from './endpoint.service.ts';
import { detailEndpoint } from './endpoint-view.ts';
import { EndpointsStore } from './endpoints.store.ts';

/** One endpoint with desired against observed on every server; lists leave that out. */
@Injectable()
export class EndpointDetailService {
  constructor(
    private readonly transactions: Transactions,
    private readonly endpoints: EndpointService,
    private readonly stores: EndpointsStore,
    private readonly sights: SightStore,
    @Inject(FLEET_OPTIONS) private readonly options: FleetOptions,
  ) {}

  /** Throws `not_found`. */
  async get(name: string): Promise<Endpoint> {
    const endpoint = await this.endpoints.get(name);
    const sights = await this.sights.ofEndpoint(this.transactions.manager, name);
    return detailEndpoint(endpoint, sights, await this.obstacles(endpoint));
  }

  /** The same question that the loop asks before it lets go; see `RetireReconcile`. */
  private async obstacles({ spec, deployments }: Endpoint): Promise<(sight: PlacementSight) => string | undefined> {
    const { manager } = this.transactions;
    const { lineage } = await Installation.read(manager);
    const routers = (await this.stores.fleet.routers.list(manager)).map(({ name, report, quiet_ms }) => ({
      name,
      report,
      quietMs: Number(quiet_ms),
    }));
    const draining = new Set(deployments.filter(({ state }) => state === 'draining').map(({ id }) => id));
    return ({ server, ...whole }) => {
      const what = draining.has(whole.deployment) ? whole : { ...whole, server: server.id };
      return unloadObstacle(what, routers, lineage, this.options.routerGraceMs, spec.limits.timeoutMs);
    };
  }
}
