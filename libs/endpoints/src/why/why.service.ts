import { Injectable } from '@nestjs/common';
import type { EndpointWhy, Route } from '@perch/contracts';
import { Installation, RouterService, SightStore } from '@perch/fleet';
import { Transactions, type Tx } from '@perch/platform/database';
import type { DeploymentRow } from '../deployment.store.ts';
import { unknownEndpoint } from '../endpoint-change.service.ts';
import { EndpointsStore } from '../endpoints.store.ts';
import { isModelless } from '../resolve/modelless.plan.ts';
import { processingWords } from '../resolve/processing.plan.ts';
import { WantedObserve } from '../resolve/wanted.observe.ts';
import { withOwnWeights } from '../split/split-member.plan.ts';
import { noForce } from '../traffic/traffic.plan.ts';
import { planWhy } from './why.plan.ts';
import type { WhyDeployment } from './why-facts.ts';
import type { WhyTraffic } from './why-traffic.plan.ts';

/** One answer to "why is my version not served?": gathers what is known, and leaves the reasoning to `planWhy`. */
@Injectable()
export class WhyService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly sights: SightStore,
    private readonly routers: RouterService,
    private readonly wanted: WantedObserve,
  ) {}

  /** `version` null: the one that the endpoint names, else the newest. Throws `not_found` for a name never used. */
  async why(name: string, version: number | null): Promise<EndpointWhy> {
    const { manager } = this.transactions;
    const { endpoints, deployments } = this.stores;
    const row = await endpoints.get(manager, name);
    if (!row) throw unknownEndpoint(name);
    const splits = await this.stores.splits.naming(manager, name);
    const spec = row.spec && withOwnWeights(row.spec, splits.find((split) => split.name === name)?.spec);
    const published = await this.sights.published(manager, name);
    const rows = await deployments.ofEndpoint(manager, name);
    const facts = {
      name,
      generation: row.generation,
      spec,
      splits,
      changedAt: row.updated_at.toISOString(),
      changedBy: row.updated_by,
      status: row.status,
      versions: spec ? await this.wanted.versionsFor(spec) : [],
      deployments: rows.map(toWhy),
      placements: await this.sights.ofEndpoint(manager, name),
      wantedRoute: (await deployments.routes(manager, [name])).get(name) ?? null,
      published: { route: published.route as Route | null, since: published.since },
      lineage: (await Installation.read(manager)).lineage,
      routers: await this.routers.list(),
      ...(spec?.traffic.mode === 'progressive' ? { traffic: await this.traffic(manager, name, rows) } : {}),
    };
    return planWhy(facts, version);
  }

  private async traffic(tx: Tx, name: string, rows: readonly DeploymentRow[]): Promise<WhyTraffic> {
    const said = (await this.stores.traffic.ofEndpoints(tx, [name])).get(name);
    const refused = await this.stores.traffic.quarantine.refusals(tx, name);
    return { force: said?.force ?? noForce, refused, digests: new Map(rows.map(({ id, digest }) => [id, digest])) };
  }
}

const toWhy = ({ id, version, state, reason, since, body }: DeploymentRow): WhyDeployment => ({
  id,
  version,
  state,
  reason,
  since: since.toISOString(),
  deployable: body !== null,
  ...(body?.processing.module ? { module: processingWords(body.processing) } : {}),
  ...(isModelless(body) ? { modelless: true as const } : {}),
});
