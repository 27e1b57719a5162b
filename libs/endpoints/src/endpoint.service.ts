import { Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type ApplyResult,
  type Endpoint,
  type EndpointGeneration,
  type EndpointSpec,
} from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import type { EndpointRow } from './endpoint.store.ts';
import { EndpointChangeService, unknownEndpoint } from './endpoint-change.service.ts';
import { viewEndpoint } from './endpoint-view.ts';
import { EndpointsStore } from './endpoints.store.ts';
import { WantedObserve } from './resolve/wanted.observe.ts';
import { diffSpecs, effectOf } from './spec.diff.ts';
import { SpecAcceptService } from './spec-accept.service.ts';

export interface ApplyOptions {
  /** Only say what would change. */
  dryRun?: boolean;
  /** The generation the caller saw; another one in force is `precondition_failed` with both sides' differences. */
  expectedGeneration?: number;
  reason?: string;
}

/** Endpoints as people change and see them. Serving follows by itself: `EndpointReconcile`. */
@Injectable()
export class EndpointService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly change: EndpointChangeService,
    private readonly wanted: WantedObserve,
    private readonly accepting: SpecAcceptService,
  ) {}

  /** Makes the endpoint as the spec says, whether it exists or not; an equal spec changes nothing. */
  async apply(actor: Actor, input: unknown, options: ApplyOptions = {}): Promise<ApplyResult> {
    const spec = await this.accepting.accept(actor, input);
    if (options.dryRun) return this.predict(spec, options.expectedGeneration);
    const { before, generation, changed } = await this.change.put(actor, spec, { ...options, verb: 'apply' });
    const result = await this.describe(spec, before, generation);
    return { ...result, outcome: !changed ? 'unchanged' : before?.spec ? 'updated' : 'created' };
  }

  /** Throws `conflict` with the differences when the endpoint exists. */
  async create(actor: Actor, input: unknown, reason = ''): Promise<Endpoint> {
    const spec = await this.accepting.accept(actor, input);
    await this.change.put(actor, spec, { verb: 'create', reason });
    return this.get(spec.name);
  }

  /** Throws `not_found`, or `precondition_failed` with both sides' differences. */
  async replace(actor: Actor, name: string, input: unknown, options: ApplyOptions = {}): Promise<Endpoint> {
    const spec = await this.accepting.accept(actor, input);
    if (spec.name !== name)
      throw new AppError('invalid', `endpoint ${name}: the spec names ${spec.name}; an endpoint keeps its name`);
    await this.change.put(actor, spec, { ...options, verb: 'replace' });
    return this.get(name);
  }

  /** Back to the spec of an older generation, as a new one. */
  async rollback(actor: Actor, name: string, generation: number, options: ApplyOptions = {}): Promise<Endpoint> {
    const old = await this.stores.endpoints.generation(this.transactions.manager, name, generation);
    if (!old) {
      await this.found(name);
      throw new AppError('not_found', `endpoint ${name} has no generation ${generation}; see its history`);
    }
    if (old.spec === null)
      throw new AppError('invalid', `generation ${generation} of endpoint ${name} is its removal; name another one`);
    const reason = options.reason || `rollback to generation ${generation}`;
    const spec = await this.accepting.again(actor, old.spec);
    await this.change.put(actor, spec, { ...options, reason, verb: 'rollback' });
    return this.get(name);
  }

  /** Takes the endpoint away; its versions are unloaded when no router can send to them. Throws `not_found`. */
  async remove(
    actor: Actor,
    name: string,
    options: Pick<ApplyOptions, 'expectedGeneration' | 'reason'> = {},
  ): Promise<void> {
    await this.change.remove(actor, name, options);
  }

  async get(name: string): Promise<Endpoint> {
    const { manager } = this.transactions;
    return (await this.views(manager, [await this.found(name)]))[0]!;
  }

  /** In order of names, from after `after`; at most `limit`. */
  async list(after: string | null, limit: number): Promise<Endpoint[]> {
    const { manager } = this.transactions;
    return this.views(manager, await this.stores.endpoints.list(manager, after, limit));
  }

  /** Newest first; also those of an endpoint that was removed. */
  async generations(name: string): Promise<EndpointGeneration[]> {
    const found = await this.stores.endpoints.generations(this.transactions.manager, name);
    if (found.length === 0) throw unknownEndpoint(name);
    return found;
  }

  private async found(name: string): Promise<EndpointRow> {
    const row = await this.stores.endpoints.get(this.transactions.manager, name);
    if (!row?.spec) throw unknownEndpoint(name);
    return row;
  }

  private async views(tx: Tx, rows: readonly EndpointRow[]): Promise<Endpoint[]> {
    const names = rows.map(({ name }) => name);
    const deployments = await this.stores.deployments.ofEndpoints(tx, names);
    const placements = await this.stores.fleet.placements.ofEndpoints(tx, names);
    const routes = await this.stores.deployments.routes(tx, names);
    const traffic = await this.stores.traffic.ofEndpoints(tx, names);
    return rows.map((row) =>
      viewEndpoint(
        row,
        deployments.filter(({ endpoint }) => endpoint === row.name),
        placements.filter(({ endpoint }) => endpoint === row.name),
        routes.get(row.name) ?? null,
        traffic.get(row.name)?.force,
      ),
    );
  }

  private async predict(spec: EndpointSpec, expected: number | undefined): Promise<ApplyResult> {
    const before = await this.change.check(this.transactions.manager, spec, expected);
    const result = await this.describe(spec, before, before?.generation ?? 0);
    const outcome = !before?.spec ? 'would_create' : result.changes.length > 0 ? 'would_update' : 'unchanged';
    return { ...result, outcome };
  }

  private async describe(spec: EndpointSpec, before: EndpointRow | undefined, generation: number) {
    const old = before?.spec ?? null;
    const effect = effectOf(old, spec, await this.wanted.wantedNumbers(spec), before?.status.servingVersions ?? []);
    return { name: spec.name, generation, changes: diffSpecs(old, spec), effect };
  }
}
