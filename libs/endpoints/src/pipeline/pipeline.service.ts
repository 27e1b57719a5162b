import { Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type ApplyResult,
  type Pipeline,
  type PipelineGeneration,
  type PipelineSpec,
  type Route,
} from '@perch/contracts';
import { routingTableDocument } from '@perch/fleet';
import { Transactions, type Tx } from '@perch/platform/database';
import { EndpointsStore } from '../endpoints.store.ts';
import { diffSpecs } from '../spec.diff.ts';
import { membersOf, parsePipeline } from './pipeline.plan.ts';
import type { PipelineRow } from './pipeline.store.ts';
import { PipelineChangeService, type PipelinePutOptions, unknownPipeline } from './pipeline-change.service.ts';
import { type PipelineSurroundings, pipelineEffect, viewPipeline } from './pipeline-view.plan.ts';

export type PipelineApplyOptions = Omit<PipelinePutOptions, 'verb'> & {
  /** Only say what would change. */
  dryRun?: boolean;
};

type Live = PipelineRow & { spec: PipelineSpec };
const isLive = (row: PipelineRow | undefined): row is Live => row?.spec != null;

/** Pipelines as people change and see them. The table follows by itself. */
@Injectable()
export class PipelineService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly change: PipelineChangeService,
  ) {}

  /** Makes the pipeline as the spec says, whether it exists or not; an equal spec changes nothing. */
  async apply(actor: Actor, input: unknown, options: PipelineApplyOptions = {}): Promise<ApplyResult> {
    const settled = await this.change.settle(actor, parsePipeline(input));
    const { spec } = settled;
    const { manager } = this.transactions;
    if (!options.dryRun) {
      const { before, generation, changed } = await this.change.put(actor, settled, { ...options, verb: 'apply' });
      const outcome = !changed ? 'unchanged' : before?.spec ? 'updated' : 'created';
      return { ...(await this.describe(manager, before?.spec ?? null, spec)), outcome, generation };
    }
    const before = await this.stores.pipelines.get(manager, spec.name);
    await this.change.check(manager, actor, settled, before, { ...options, verb: 'apply' });
    const result = await this.describe(manager, before?.spec ?? null, spec);
    const outcome = !before?.spec ? 'would_create' : result.changes.length > 0 ? 'would_update' : 'unchanged';
    return { ...result, outcome, generation: before?.generation ?? 0 };
  }

  /** Throws `conflict` with the differences when the pipeline exists. */
  async create(actor: Actor, input: unknown, reason = ''): Promise<Pipeline> {
    const settled = await this.change.settle(actor, parsePipeline(input));
    await this.change.put(actor, settled, { verb: 'create', reason });
    return this.get(settled.spec.name);
  }

  /** Throws `not_found`, or `precondition_failed` with both sides' differences. */
  async replace(actor: Actor, name: string, input: unknown, options: PipelineApplyOptions = {}): Promise<Pipeline> {
    const settled = await this.change.settle(actor, parsePipeline(input));
    if (settled.spec.name !== name)
      throw new AppError('invalid', `pipeline ${name}: the spec names ${settled.spec.name}; a pipeline keeps its name`);
    await this.change.put(actor, settled, { ...options, verb: 'replace' });
    return this.get(name);
  }

  /** Back to the spec of an older generation, as a new one. */
  async rollback(
    actor: Actor,
    name: string,
    generation: number,
    options: PipelineApplyOptions = {},
  ): Promise<Pipeline> {
    const old = (await this.generations(name)).find((one) => one.generation === generation);
    if (!old) throw new AppError('not_found', `pipeline ${name} has no generation ${generation}; see its history`);
    if (old.spec === null)
      throw new AppError('invalid', `generation ${generation} of pipeline ${name} is its removal; name another one`);
    const settled = await this.change.settle(actor, parsePipeline(old.spec));
    const reason = options.reason || `rollback to generation ${generation}`;
    await this.change.put(actor, settled, { ...options, reason, verb: 'rollback' });
    return this.get(name);
  }

  /** Takes the name away; the endpoints that it asked stay. Throws `not_found`, `conflict` when another pipeline asks it. */
  async remove(actor: Actor, name: string, options: Omit<PipelinePutOptions, 'verb'> = {}): Promise<void> {
    await this.change.remove(actor, name, options);
  }

  async get(name: string): Promise<Pipeline> {
    const { manager } = this.transactions;
    const row = await this.stores.pipelines.get(manager, name);
    if (!isLive(row)) throw unknownPipeline(name);
    return (await this.views(manager, [row]))[0]!;
  }

  /** In order of names, from after `after`; at most `limit`. */
  async list(after: string | null, limit: number): Promise<Pipeline[]> {
    const { manager } = this.transactions;
    const rows = await this.stores.pipelines.list(manager, after, limit);
    return this.views(manager, rows.filter(isLive));
  }

  /** Newest first; also those of a pipeline that was removed. */
  async generations(name: string): Promise<PipelineGeneration[]> {
    const found = await this.stores.pipelines.generations(this.transactions.manager, name);
    if (found.length === 0) throw unknownPipeline(name);
    return found;
  }

  private async views(tx: Tx, rows: readonly Live[]): Promise<Pipeline[]> {
    const members = [...new Set(rows.flatMap(({ spec }) => membersOf(spec)))];
    const around = await this.surroundings(tx, members, rows.map(({ name }) => name)); // biome-ignore format: one row reads better
    return rows.map((row) => viewPipeline(row, around));
  }

  private async surroundings(tx: Tx, members: string[], own: string[]): Promise<PipelineSurroundings> {
    const { documents } = this.stores.fleet;
    const entries = await documents.entriesOf(tx, routingTableDocument, 'endpoints', [...members, ...own]);
    const routes = new Map(entries.flatMap(({ key, value }) => (value ? [[key, value as Route] as const] : [])));
    const ids = [...routes.values()].flatMap(({ targets }) => targets.flatMap(({ servers }) => servers));
    return {
      routes,
      endpoints: await this.stores.endpoints.specs(tx, members),
      splits: await this.stores.splits.among(tx, members),
      pipelines: new Set((await this.stores.pipelines.reached(tx, members)).keys()),
      servers: await this.stores.pipelines.serverNames(tx, [...new Set(ids)]),
    };
  }

  private async describe(tx: Tx, before: PipelineSpec | null, after: PipelineSpec) {
    const changes = diffSpecs(before, after);
    const endpoints = await this.stores.endpoints.specs(tx, membersOf(after));
    const effect = before && changes.length === 0 ? [] : pipelineEffect(before, after, endpoints);
    return { name: after.name, changes, effect };
  }
}
