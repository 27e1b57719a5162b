import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, type SplitSpec } from '@perch/contracts';
import { theOnlyKey, work } from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { EndpointsStore } from '../endpoints.store.ts';
import { requireGeneration } from '../generation.decide.ts';
import { pipelinesInTheWay, pipelineUsersText } from '../pipeline/pipeline-name.plan.ts';
import { namesToLock, splitVersionLabel } from '../resolve/name.plan.ts';
import { WantedObserve } from '../resolve/wanted.observe.ts';
import { diffSpecs } from '../spec.diff.ts';
import { outOfScope, placesOf, type SplitWorld, splitFaults } from './split.plan.ts';
import type { SplitRow } from './split.store.ts';
import { splitNameConflict } from './split-name.plan.ts';
import { namesIn } from './split-target.plan.ts';

export interface SplitPutOptions {
  verb: 'apply' | 'create' | 'replace';
  expectedGeneration?: number | undefined;
  reason?: string;
  /** Endpoints that are made together with it. */
  assume?: readonly string[];
}

export interface SplitPut {
  before: SplitRow | undefined;
  generation: number;
  changed: boolean;
}

export const unknownSplit = (name: string) =>
  new AppError('not_found', `split ${name} does not exist; "perch split list" shows those that do`);

/** Writes generations of splits: one transaction a change, compare-and-set, with actor and reason. */
@Injectable()
export class SplitChangeService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly wanted: WantedObserve,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  async put(actor: Actor, spec: SplitSpec, options: SplitPutOptions): Promise<SplitPut> {
    return this.transactions.run(async (tx) => {
      const names = [...namesToLock(spec.name), ...(spec.targets ?? []).flatMap(namesIn)];
      await this.stores.endpoints.lockNames(tx, [...new Set(names)].sort());
      const before = await this.stores.splits.lock(tx, spec.name);
      const world = await this.check(tx, actor, spec, before, options);
      const differences = diffSpecs(before?.spec ?? null, spec);
      const changed = !before?.spec || differences.length > 0;
      if (!changed) return { before, generation: before!.generation, changed };
      const generation = (before?.generation ?? 0) + 1;
      const reason = options.reason ?? '';
      const members = [...new Set(placesOf(spec, world).map(({ endpoint }) => endpoint))];
      const { name, targetPrefix: prefix = null } = spec;
      await this.stores.splits.put(tx, { name, generation, spec, members, prefix, actor: actor.name, reason });
      const action = before?.spec ? 'split.update' : 'split.create';
      await this.changes.record(tx, actor, action, name, { generation, reason, changes: differences });
      await this.wake(tx, before?.spec ?? null, spec);
      return { before, generation, changed };
    });
  }

  async remove(actor: Actor, name: string, options: Omit<SplitPutOptions, 'verb'>): Promise<void> {
    await this.transactions.run(async (tx) => {
      const before = await this.stores.splits.lock(tx, name);
      if (!before?.spec) throw unknownSplit(name);
      requireGeneration(`split ${name}`, before, options.expectedGeneration, null, null);
      await this.refuseAsked(tx, name);
      const generation = before.generation + 1;
      const reason = options.reason ?? '';
      await this.stores.splits.put(tx, { name, generation, spec: null, members: [], prefix: null, actor: actor.name, reason }); // biome-ignore format: one row reads better
      await this.changes.record(tx, actor, 'split.remove', name, { generation, reason });
      await this.wake(tx, before.spec, null);
    });
  }

  /** What a put of this spec would throw; answers what it refers to. */
  async check(
    tx: Tx,
    actor: Actor,
    spec: SplitSpec,
    before: SplitRow | undefined,
    { verb, expectedGeneration: expected, assume = [] }: SplitPutOptions,
  ): Promise<SplitWorld> {
    const { name } = spec;
    if (verb === 'create' && before?.spec)
      throw new AppError('conflict', `split ${name} exists; update it, or choose another name`, {
        details: { generation: before.generation, changes: diffSpecs(before.spec, spec) },
      });
    if (verb === 'replace' && !before?.spec) throw unknownSplit(name);
    const base = expected === undefined ? null : await this.stores.splits.generation(tx, name, expected);
    requireGeneration(`split ${name}`, before, expected, spec, base);
    const world = await this.world(tx, spec, assume);
    const outside = outOfScope(actor.endpoints, spec, world);
    if (outside !== undefined)
      throw new AppError('forbidden', `key ${actor.name} is not scoped to endpoint ${outside}`);
    const errors = splitFaults(spec, world);
    if (errors.length > 0) {
      const words = errors.slice(0, 3).map(({ path, message }) => `${path}: ${message}`);
      throw new AppError('invalid', `split ${name}: ${words.join('; ')}`, { details: { errors } });
    }
    const parent = splitVersionLabel(name)?.parent ?? null;
    const endpoints = await this.stores.endpoints.relatives(tx, name, parent);
    const own = world.endpoints.has(name) ? [{ name, onlyVersion: null }] : [];
    const splits = await this.stores.splits.relatives(tx, name, parent);
    const pipelines = await this.stores.pipelines.relatives(tx, name, parent);
    const conflict =
      splitNameConflict(spec, [...own, ...endpoints], splits) ??
      pipelinesInTheWay({ name, onlyVersion: null, kind: 'split' }, pipelines);
    if (conflict) throw new AppError('conflict', conflict);
    return world;
  }

  private async world(tx: Tx, spec: SplitSpec, assume: readonly string[]): Promise<SplitWorld> {
    const names = [...new Set([spec.name, ...(spec.targets ?? []).flatMap(namesIn)])];
    const endpoints = await this.stores.endpoints.specs(tx, names);
    const coming = new Set(assume.filter((name) => !endpoints.has(name)));
    const splits = await this.stores.splits.among(tx, names);
    const draft = { endpoints, coming, splits, versions: new Map() };
    const labelled = placesOf(spec, draft).filter(({ version }) => version !== null);
    for (const endpoint of new Set(labelled.map((place) => place.endpoint))) {
      const found = endpoints.get(endpoint);
      if (found) draft.versions.set(endpoint, await this.wanted.versionsFor(found));
    }
    return draft;
  }

  /** Under an endpoint's own name that endpoint answers on. */
  private async refuseAsked(tx: Tx, name: string): Promise<void> {
    const users = await this.stores.pipelines.naming(tx, name);
    if (users.length === 0 || (await this.stores.endpoints.specs(tx, [name])).has(name)) return;
    const words = pipelineUsersText(name, users);
    throw new AppError('conflict', `split ${name} is in use by ${words}; change or remove the pipeline first`);
  }

  /** Whoever is named, or was: what must be loaded has changed. The table follows by itself. */
  private async wake(tx: Tx, before: SplitSpec | null, after: SplitSpec | null): Promise<void> {
    const specs = [before, after].filter((spec) => spec !== null);
    const names = new Set(specs.flatMap(({ name, targets = [] }) => [name, ...targets.flatMap(namesIn)]));
    const known = await this.stores.endpoints.specs(tx, [...names]);
    await this.workStore.enqueueAll(tx, work.endpoint, [...known.keys()].sort());
    await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
  }
}
