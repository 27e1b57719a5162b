import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EndpointSpec } from '@perch/contracts';
import { type PlaceableModels, routerLiveMs } from '@perch/fleet';
import { type Outcome, Transactions, type Tx } from '@perch/platform/database';
import type { DeploymentRow } from './deployment.store.ts';
import { EndpointApply } from './endpoint.apply.ts';
import {
  type EndpointPlan,
  type EndpointWorld,
  type KnownDeployment,
  planEndpoint,
  type TrafficInput,
  type WantedVersion,
} from './endpoint.plan.ts';
import type { EndpointRow } from './endpoint.store.ts';
import { EndpointsStore } from './endpoints.store.ts';
import { nothingWanted, WantedObserve, type WantedSight } from './resolve/wanted.observe.ts';
import { RetireReconcile } from './retire.reconcile.ts';
import { type NamingSplit, namedVersions, withOwnWeights } from './split/split-member.plan.ts';
import type { Refused } from './traffic/quarantine.store.ts';
import { missingDigests } from './traffic/traffic.plan.ts';
import type { TrafficRow } from './traffic/traffic.store.ts';

/** A plan builds on what the one before it wrote; more passes than this mean that somebody else keeps writing too. */
const passesAtOnce = 6;
/** What still leaves is looked at again without being asked: routers may have gone silent for good. */
const leavingMs = 2_000;

/** Room that others make is not told to everybody who might want it. */
const shortMs = 10_000;

interface Pass {
  /** The world has changed, look again. */
  again: boolean;
  /** Something waits to be let go. */
  leaving: boolean;
  /** Something has fewer servers than it wants. */
  short: boolean;
}
const nothingToDo: Pass = { again: false, leaving: false, short: false };

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
    if (held) return { again: 'after', ms: leavingMs };
    return seen.short ? { again: 'after', ms: shortMs } : { again: 'on-change' };
  }

  private async pass(name: string): Promise<Pass> {
    const { manager } = this.transactions;
    const seen = await this.stores.endpoints.get(manager, name);
    if (!seen) return nothingToDo;
    const serves = seen.spec && !seen.spec.stopped;
    const known = serves ? await this.stores.deployments.ofEndpoint(manager, name) : [];
    const refused = seen.refuses ? await this.stores.traffic.quarantine.refusals(manager, name) : [];
    const splits = serves ? await this.stores.splits.naming(manager, name) : [];
    const sight = serves ? await this.look(seen.spec!, known, refused, splits) : nothingWanted;
    return this.transactions.run(async (tx) => {
      const row = await this.stores.endpoints.lock(tx, name);
      if (row?.generation !== seen.generation) return { ...nothingToDo, again: row !== undefined };
      const said = isProgressive(row) ? await this.stores.traffic.lock(tx, name) : null;
      // Locked with the traffic: whoever refuses something says in the same transaction who has the traffic instead.
      const still = said ? await this.stores.traffic.quarantine.refusals(tx, name) : refused;
      if (digestsText(still) !== digestsText(refused)) return { ...nothingToDo, again: true };
      const { world, plan } = await this.plan(tx, { row, known, refused, said, splits }, sight);
      const leaving =
        plan.places.leave.length > 0 ||
        world.placements.some(({ state }) => state === 'leaving') ||
        [...world.deployments, ...plan.states].some(({ state }) => state === 'draining');
      const again = await this.applier.apply(tx, row, plan, world.traffic);
      return { again, leaving, short: plan.places.short.size > 0 };
    });
  }

  /** What the rule wants, and what splits name. */
  private async look(
    spec: EndpointSpec,
    known: readonly DeploymentRow[],
    refused: readonly Refused[],
    splits: readonly NamingSplit[],
  ): Promise<WantedSight> {
    const sight = await this.wanted.observe(spec, known, refused);
    const found: (WantedVersion | undefined)[] = [];
    for (const number of namedVersions(spec, splits)) found.push(await this.wanted.observeOne(spec, number, known));
    const named = found.filter((one) => one !== undefined);
    return named.length > 0 ? { ...sight, named } : sight;
  }

  /** Where something is to be added, once more under the lock of the pool, with all that is known of the models. */
  private async plan(tx: Tx, scene: Scene, sight: WantedSight): Promise<{ world: EndpointWorld; plan: EndpointPlan }> {
    const { row } = scene;
    const world = await this.world(tx, scene, sight);
    const draft = planEndpoint(world, randomUUID);
    await this.applier.describe(tx, draft);
    const { place, short } = draft.places;
    if (row.spec === null || place.length + short.size === 0) return { world, plan: draft };
    const { capacity } = this.stores.fleet;
    const { pool } = row.spec.fleet;
    const models = placeable(world);
    const roomy = world.servers.every(({ facts }) => !facts?.ramBytes && !facts?.gpus.length);
    await capacity.lockPool(tx, pool, roomy && !models.literal);
    const servers = await capacity.ofPool(tx, pool);
    const sure = { ...world, servers, facts: await capacity.modelFacts(tx, pool, models) };
    return { world: sure, plan: planEndpoint(sure, randomUUID) };
  }

  private async world(
    tx: Tx,
    { row, known, refused, said, splits }: Scene,
    sight: WantedSight,
  ): Promise<EndpointWorld> {
    const { name, generation, spec } = row;
    const deployments = (await this.stores.deployments.ofEndpoint(tx, name, known)).map(toKnown);
    const { complete: _complete, ...wishes } = sight;
    return {
      name,
      generation,
      spec: spec && withOwnWeights(spec, splits.find((split) => split.name === name)?.spec),
      ...wishes,
      ...(sight.named ? { routed: await this.routed(tx, name) } : {}),
      refused: new Set(refused.map(({ digest }) => digest)),
      deployments,
      ...(said ? { traffic: await this.traffic(tx, row, said, { sight, deployments }) } : {}),
      placements: await this.stores.fleet.placements.ofEndpoint(tx, name),
      ...(spec?.model.source ? { holdings: await this.wanted.holdings(tx, spec.model.source) } : {}),
      servers: spec ? await this.stores.fleet.capacity.ofPool(tx, spec.fleet.pool) : [],
      problems: await this.stores.fleet.routers.problems(tx, routerLiveMs),
    };
  }

  private async routed(tx: Tx, name: string): Promise<Set<string>> {
    const arms = (await this.stores.deployments.routes(tx, [name])).get(name)?.arms ?? [];
    return new Set(arms.map(({ deployment }) => deployment));
  }

  /** What a rollout names may be gone, after a stop for instance: it comes back as it was, unless its version is gone too. */
  private async traffic(
    tx: Tx,
    { name, spec }: EndpointRow,
    said: TrafficRow,
    { sight, deployments }: { sight: WantedSight; deployments: readonly KnownDeployment[] },
  ): Promise<TrafficInput> {
    const missing = missingDigests(said.force, sight.wanted, deployments);
    const rows = missing.length > 0 ? await this.stores.deployments.lastOf(tx, name, spec!.model, missing) : [];
    const stored = rows.filter(({ version }) => sight.complete.has(version)).map(toWanted);
    const routes = said.force.stable === null ? await this.stores.deployments.routes(tx, [name]) : new Map();
    return { ...said, stored, routed: routes.get(name)?.arms ?? [] };
  }
}

/** What one pass read before it planned. */
interface Scene {
  row: EndpointRow;
  /** Rows of deployments as they were before the lock. */
  known: readonly DeploymentRow[];
  refused: readonly Refused[];
  /** Null: not progressive. */
  said: TrafficRow | null;
  splits: readonly NamingSplit[];
}

const isProgressive = ({ spec }: EndpointRow) => spec?.traffic.mode === 'progressive' && !spec.stopped;
const digestsText = (refused: readonly Refused[]) => refused.map(({ digest }) => digest).join();

function placeable({ wanted, named = [], deployments }: EndpointWorld): PlaceableModels {
  const variants = [...wanted, ...named, ...deployments].flatMap(({ body }) => body?.variants ?? []);
  const models = variants.flatMap(({ tritonModel, model, needs }) => [
    { name: tritonModel, digest: model.digest },
    ...needs.map((needed) => ({ name: needed.tritonModel, digest: needed.model.digest })),
  ]);
  return { models, literal: variants.some(({ needs }) => needs.some(({ as }) => as !== null)) };
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

const toWanted = (row: DeploymentRow): WantedVersion => ({
  version: row.version,
  digest: row.digest,
  sourceDigest: row.source_digest,
  tritonModel: row.triton_model,
  body: row.body,
  fault: null,
});
