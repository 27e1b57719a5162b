import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { routerLiveMs } from '@perch/fleet';
import { type Outcome, Transactions, type Tx } from '@perch/platform/database';
import type { DeploymentRow } from './deployment.store.ts';
import { EndpointApply } from './endpoint.apply.ts';
import { type EndpointWorld, type KnownDeployment, planEndpoint } from './endpoint.plan.ts';
import type { EndpointRow } from './endpoint.store.ts';
import { EndpointsStore } from './endpoints.store.ts';
import { RetireReconcile } from './retire.reconcile.ts';
import { WantedObserve, type WantedSight } from './wanted.observe.ts';

/** A plan builds on what the one before it wrote; more passes than this mean that somebody else keeps writing too. */
const passesAtOnce = 6;
/** What still leaves is looked at again without being asked: routers may have gone silent for good. */
const leavingMs = 2_000;

/** Brings one endpoint a step nearer to what its spec and the registry want. */
@Injectable()
export class EndpointReconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly wanted: WantedObserve,
    private readonly applier: EndpointApply,
    private readonly retiring: RetireReconcile,
  ) {}

  async reconcile(name: string): Promise<Outcome> {
    let seen = await this.pass(name);
    for (let pass = 1; seen.again; pass += 1) {
      if (pass >= passesAtOnce) return { again: 'after', ms: 100 };
      seen = await this.pass(name);
    }
    const held = seen.leaving && (await this.retiring.retire(name));
    return held ? { again: 'after', ms: leavingMs } : { again: 'on-change' };
  }

  /** `again`: the world has changed, look again. `leaving`: something waits to be let go. */
  private async pass(name: string): Promise<{ again: boolean; leaving: boolean }> {
    const { manager } = this.transactions;
    const seen = await this.stores.endpoints.get(manager, name);
    if (!seen) return { again: false, leaving: false };
    const nothing: WantedSight = { modelExists: false, wanted: [] };
    const sight =
      seen.spec && !seen.spec.stopped
        ? await this.wanted.observe(seen.spec, await this.stores.deployments.ofEndpoint(manager, name))
        : nothing;
    return this.transactions.run(async (tx) => {
      const row = await this.stores.endpoints.lock(tx, name);
      if (row?.generation !== seen.generation) return { again: row !== undefined, leaving: false };
      const world = await this.world(tx, row, sight);
      const plan = planEndpoint(world, randomUUID);
      const leaving =
        plan.leave.length > 0 ||
        world.placements.some(({ state }) => state === 'leaving') ||
        [...world.deployments, ...plan.states].some(({ state }) => state === 'draining');
      return { again: await this.applier.apply(tx, row, plan), leaving };
    });
  }

  private async world(tx: Tx, row: EndpointRow, sight: WantedSight): Promise<EndpointWorld> {
    const { name, generation, spec } = row;
    const deployments = await this.stores.deployments.ofEndpoint(tx, name);
    return {
      generation,
      spec,
      ...sight,
      deployments: deployments.map(toKnown),
      placements: await this.stores.fleet.placements.ofEndpoint(tx, name),
      servers: spec ? await this.stores.fleet.servers.ofPool(tx, spec.fleet.pool) : [],
      problems: await this.stores.fleet.routers.problems(tx, routerLiveMs),
    };
  }
}

const toKnown = (row: DeploymentRow): KnownDeployment => ({
  id: row.id,
  version: row.version,
  digest: row.digest,
  tritonModel: row.triton_model,
  body: row.body,
  state: row.state,
  reason: row.reason,
});
