import { Inject, Injectable } from '@nestjs/common';
import { canonicalJson, systemActor } from '@perch/contracts';
import { theOnlyKey, work } from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, type Tx, WorkStore } from '@perch/platform/database';
import type { EndpointPlan, TrafficInput } from './endpoint.plan.ts';
import type { EndpointRow } from './endpoint.store.ts';
import { EndpointsStore } from './endpoints.store.ts';
import type { Places } from './places.plan.ts';
import { isModelless } from './resolve/modelless.plan.ts';
import { rolloutWork } from './traffic/traffic.plan.ts';

/** Writes one plan of one endpoint, wholly or not at all, and wakes whoever has to act on it. */
@Injectable()
export class EndpointApply {
  constructor(
    private readonly stores: EndpointsStore,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /** True: look again. What was placed is served there already, or wants no server, and nobody would tell. */
  async apply(tx: Tx, row: EndpointRow, plan: EndpointPlan, said?: TrafficInput): Promise<boolean> {
    await this.createDeployments(tx, row, plan);
    for (const { id, state, reason } of plan.states) await this.stores.deployments.setState(tx, id, state, reason);
    const servedAlready = await this.applyPlaces(tx, plan.places);
    const routeChanged = await this.stores.deployments.saveRoute(tx, row.name, plan.route);
    if (canonicalJson(plan.status) !== canonicalJson(row.status))
      await this.stores.endpoints.saveStatus(tx, row.name, plan.status);
    await this.applyTraffic(tx, row.name, plan, said);
    await this.note(tx, row, plan);
    if (routeChanged) await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
    // what has no model is ready at once, and no server would tell
    return servedAlready || plan.create.some(({ body }) => isModelless(body));
  }

  /** Whoever moves the traffic is told what it may want to act on. */
  private async applyTraffic(tx: Tx, endpoint: string, plan: EndpointPlan, said: TrafficInput | undefined) {
    const { traffic, create, states } = plan;
    if (!traffic || !said) return;
    const wished = canonicalJson(traffic.wish) !== canonicalJson(said.wish);
    const forced = canonicalJson(traffic.force) !== canonicalJson(said.force);
    if (wished) await this.stores.traffic.saveWish(tx, endpoint, traffic.wish);
    if (forced) await this.stores.traffic.saveForce(tx, endpoint, traffic.force);
    if (wished || forced || create.length + states.length > 0) await this.workStore.enqueue(tx, rolloutWork, endpoint);
  }

  private async applyPlaces(tx: Tx, { place, leave, yields, waits, failures }: Places): Promise<boolean> {
    const { placements, capacity } = this.stores.fleet;
    const servedAlready = await placements.place(tx, place);
    await placements.leave(tx, leave);
    await placements.setYields(tx, yields);
    await placements.setWaits(tx, waits);
    await capacity.noteFailures(tx, failures);
    const touched = [...place, ...leave, ...yields].map(({ server }) => server);
    await capacity.recount(tx, [...new Set(touched)].sort());
    await this.workStore.enqueueAll(tx, work.server, [...new Set(place.map(({ server }) => server))]);
    return servedAlready;
  }

  /** Models must be known before anything is placed; this waits for nobody, so it comes before the pool is locked. */
  async describe(tx: Tx, { create }: Pick<EndpointPlan, 'create'>): Promise<void> {
    for (const { body } of create)
      for (const variant of body?.variants ?? []) await this.stores.fleet.placements.describeVariant(tx, variant);
  }

  private async createDeployments(tx: Tx, row: EndpointRow, plan: EndpointPlan): Promise<void> {
    for (const wish of plan.create) {
      await this.stores.deployments.insert(tx, {
        id: wish.id,
        endpoint: row.name,
        generation: row.generation,
        project: row.spec?.model.project ?? '',
        model: row.spec?.model.name ?? '',
        version: wish.version,
        digest: wish.digest,
        source_digest: wish.sourceDigest,
        triton_model: wish.tritonModel,
        body: wish.body,
        state: wish.state,
        reason: wish.reason,
      });
    }
  }

  /** Every change has an actor and a row, also those that the rule makes. */
  private async note(tx: Tx, row: EndpointRow, plan: EndpointPlan): Promise<void> {
    for (const { id, version, tritonModel, state, reason } of plan.create) {
      await this.changes.record(tx, systemActor, 'deployment.create', row.name, {
        version,
        tritonModel,
        state,
        reason,
      });
      if (state === 'failed')
        await this.changes.record(tx, systemActor, 'deployment.failed', row.name, { deployment: id, version, reason });
    }
    for (const { id, version, state, reason } of plan.states)
      if (state === 'ready' || state === 'failed' || state === 'draining')
        await this.changes.record(tx, systemActor, `deployment.${state}`, row.name, {
          deployment: id,
          version,
          reason,
        });
    for (const { words: _words, ...switched } of plan.places.switched)
      await this.changes.record(tx, systemActor, 'deployment.fallback', row.name, switched);
    if (plan.status.phase !== row.status.phase || plan.status.reason !== row.status.reason)
      await this.changes.record(tx, systemActor, 'endpoint.status', row.name, { ...plan.status });
  }
}
