import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, type BoundProcessing, type PipelineSpec } from '@perch/contracts';
import { theOnlyKey, work } from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { EndpointsStore } from '../endpoints.store.ts';
import { requireGeneration } from '../generation.decide.ts';
import { namesToLock, splitVersionLabel } from '../resolve/name.plan.ts';
import { bindModule } from '../resolve/processing.plan.ts';
import { ProcessingSource } from '../resolve/processing.source.ts';
import { diffSpecs } from '../spec.diff.ts';
import { covers } from '../split/split.plan.ts';
import { membersOf, type PipelineWorld, pipelineWorldFaults } from './pipeline.plan.ts';
import type { PipelineRow } from './pipeline.store.ts';
import { pipelineNameConflict, pipelineUsersText } from './pipeline-name.plan.ts';

export interface PipelinePutOptions {
  verb: 'apply' | 'create' | 'replace' | 'rollback';
  expectedGeneration?: number | undefined;
  reason?: string;
  /** Names that are made together with it. */
  assume?: readonly string[] | undefined;
}

export interface PipelinePut {
  before: PipelineRow | undefined;
  generation: number;
  changed: boolean;
}

/** A spec whose modules are there: by number, each where it may run, and bound. */
export interface SettledPipeline {
  spec: PipelineSpec;
  modules: Record<string, BoundProcessing>;
  records: PipelineWorld['modules'];
}

export const unknownPipeline = (name: string) =>
  new AppError('not_found', `pipeline ${name} does not exist; "perch pipeline list" shows those that do`);

/** Writes generations of pipelines: one transaction a change, compare-and-set, with actor and reason. */
@Injectable()
export class PipelineChangeService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly processing: ProcessingSource,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /** Throws `not_found` for a module that is not there, `forbidden` for an isolation that is not the actor's to choose. */
  async settle(actor: Actor, spec: PipelineSpec): Promise<SettledPipeline> {
    const before = (await this.stores.pipelines.get(this.transactions.manager, spec.name))?.spec;
    const nodes = { ...spec.nodes };
    const modules: Record<string, BoundProcessing> = {};
    const records = new Map();
    for (const [name, node] of Object.entries(spec.nodes)) {
      const wanted = processingOfNode(node);
      if (!wanted) continue;
      const thing = `pipeline ${spec.name}: node ${name}`;
      const old = before?.nodes[name];
      const { processing, module } = await this.processing.settle(actor, thing, wanted, old && processingOfNode(old));
      nodes[name] = { ...node, ...processing };
      modules[name] = bindModule(processing, module!);
      records.set(name, module!);
    }
    return { spec: { ...spec, nodes }, modules, records };
  }

  async put(actor: Actor, settled: SettledPipeline, options: PipelinePutOptions): Promise<PipelinePut> {
    const { spec, modules } = settled;
    return this.transactions.run(async (tx) => {
      const members = membersOf(spec);
      await this.stores.endpoints.lockNames(tx, [...new Set([...namesToLock(spec.name), ...members])].sort());
      const before = await this.stores.pipelines.lock(tx, spec.name);
      await this.check(tx, actor, settled, before, options);
      const differences = diffSpecs(before?.spec ?? null, spec);
      if (before?.spec && differences.length === 0) return { before, generation: before.generation, changed: false };
      const generation = (before?.generation ?? 0) + 1;
      const { name } = spec;
      const reason = options.reason ?? '';
      await this.stores.pipelines.put(tx, { name, generation, spec, members, modules, actor: actor.name, reason });
      const verb = options.verb === 'rollback' ? 'rollback' : before?.spec ? 'update' : 'create';
      await this.changes.record(tx, actor, `pipeline.${verb}`, name, { generation, reason, changes: differences });
      await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
      return { before, generation, changed: true };
    });
  }

  async remove(actor: Actor, name: string, options: Omit<PipelinePutOptions, 'verb'>): Promise<void> {
    await this.transactions.run(async (tx) => {
      await this.stores.endpoints.lockNames(tx, [name]);
      const before = await this.stores.pipelines.lock(tx, name);
      if (!before?.spec) throw unknownPipeline(name);
      requireGeneration(`pipeline ${name}`, before, options.expectedGeneration, null, null);
      const users = await this.stores.pipelines.naming(tx, name);
      if (users.length > 0)
        throw new AppError('conflict', `pipeline ${name} is in use by ${pipelineUsersText(name, users)}; change or remove that first`); // biome-ignore format: one row reads better
      const generation = before.generation + 1;
      const reason = options.reason ?? '';
      await this.stores.pipelines.put(tx, { name, generation, spec: null, members: [], modules: {}, actor: actor.name, reason }); // biome-ignore format: one row reads better
      await this.changes.record(tx, actor, 'pipeline.remove', name, { generation, reason });
      await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
    });
  }

  /** What a put of this spec would throw. */
  async check(
    tx: Tx,
    actor: Actor,
    { spec, records }: SettledPipeline,
    before: PipelineRow | undefined,
    { verb, expectedGeneration: expected, assume = [] }: PipelinePutOptions,
  ): Promise<void> {
    const { name } = spec;
    if (verb === 'create' && before?.spec)
      throw new AppError('conflict', `pipeline ${name} exists; update it, or choose another name`, {
        details: { generation: before.generation, changes: diffSpecs(before.spec, spec) },
      });
    if (verb === 'replace' && !before?.spec) throw unknownPipeline(name);
    const base = expected === undefined ? null : await this.stores.pipelines.generation(tx, name, expected);
    requireGeneration(`pipeline ${name}`, before, expected, spec, base);
    // nobody opens by a pipeline what is closed to him
    const outside = [name, ...membersOf(spec)].find((one) => !covers(actor.endpoints, one));
    if (outside !== undefined)
      throw new AppError('forbidden', `key ${actor.name} is not scoped to endpoint ${outside}`);
    const errors = pipelineWorldFaults(spec, await this.world(tx, spec, records, assume));
    if (errors.length > 0) {
      const words = errors.slice(0, 3).map(({ path, message }) => `${path}: ${message}`);
      const more = errors.length > 3 ? ` (and ${errors.length - 3} more)` : '';
      throw new AppError('invalid', `pipeline ${name}: ${words.join('; ')}${more}`, { details: { errors } });
    }
    const parent = splitVersionLabel(name)?.parent ?? null;
    const endpoints = await this.stores.endpoints.relatives(tx, name, parent);
    const own = (await this.stores.endpoints.specs(tx, [name])).has(name) ? [{ name, onlyVersion: null }] : [];
    const splits = await this.stores.splits.relatives(tx, name, parent);
    const conflict = pipelineNameConflict(name, [...own, ...endpoints], splits);
    if (conflict) throw new AppError('conflict', conflict);
  }

  private async world(
    tx: Tx,
    spec: PipelineSpec,
    modules: PipelineWorld['modules'],
    assume: readonly string[],
  ): Promise<PipelineWorld> {
    const members = membersOf(spec);
    const endpoints = await this.stores.endpoints.specs(tx, members);
    const routes = await this.stores.splits.memberRoutes(tx, members, []);
    return {
      endpoints,
      routes: new Map([...routes].flatMap(([name, route]) => (route ? [[name, route] as const] : []))),
      coming: new Set(assume.filter((name) => !endpoints.has(name))),
      splits: await this.stores.splits.among(tx, members),
      pipelines: await this.stores.pipelines.reached(tx, members),
      modules,
    };
  }
}

type Node = PipelineSpec['nodes'][string];

const processingOfNode = ({ module, isolation, options }: Node) =>
  module === undefined ? undefined : { module, ...(isolation ? { isolation } : {}), ...(options ? { options } : {}) };
