import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, type EndpointSpec } from '@perch/contracts';
import { work } from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import type { EndpointRow } from './endpoint.store.ts';
import { EndpointsStore } from './endpoints.store.ts';
import { requireGeneration } from './generation.decide.ts';
import { pipelinesInTheWay, pipelineUsersText, pipelineWishBroken } from './pipeline/pipeline-name.plan.ts';
import { nameConflict, namesToLock, splitVersionLabel } from './resolve/name.plan.ts';
import { diffSpecs } from './spec.diff.ts';
import type { NamingSplit } from './split/split-member.plan.ts';
import { splitsInTheWay, usersText } from './split/split-name.plan.ts';
import { initialStatus } from './status.plan.ts';
import { rolloutWork } from './traffic/traffic.plan.ts';

export interface PutOptions {
  verb: 'apply' | 'create' | 'replace' | 'rollback' | 'start' | 'stop';
  expectedGeneration?: number;
  reason?: string;
}

export interface Put {
  before: EndpointRow | undefined;
  generation: number;
  /** False: the spec is the one in force. */
  changed: boolean;
}

/** Writes generations: one transaction a change, compare-and-set, with actor, reason and a look at what follows. */
@Injectable()
export class EndpointChangeService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  async put(actor: Actor, spec: EndpointSpec, options: PutOptions): Promise<Put> {
    return this.transactions.run(async (tx) => {
      await this.stores.endpoints.lockNames(tx, namesToLock(spec.name));
      const before = await this.stores.endpoints.lock(tx, spec.name);
      await this.checkPut(tx, spec, before, options);
      const changed = !before?.spec || diffSpecs(before.spec, spec).length > 0;
      if (!changed) return { before, generation: before!.generation, changed };
      const generation = (before?.generation ?? 0) + 1;
      const status = before?.spec ? before.status : initialStatus(generation);
      const reason = options.reason ?? '';
      await this.stores.endpoints.put(tx, { name: spec.name, generation, spec, status, actor: actor.name, reason });
      const named = options.verb === 'rollback' || options.verb === 'start' || options.verb === 'stop';
      const action = before?.spec ? `endpoint.${named ? options.verb : 'update'}` : 'endpoint.create';
      const differences = diffSpecs(before?.spec ?? null, spec);
      await this.changes.record(tx, actor, action, spec.name, { generation, reason, changes: differences });
      await this.moveTraffic(tx, spec.name, before?.spec ?? null, spec);
      await this.workStore.enqueue(tx, work.endpoint, spec.name);
      return { before, generation, changed };
    });
  }

  async remove(actor: Actor, name: string, options: Omit<PutOptions, 'verb'>): Promise<void> {
    await this.transactions.run(async (tx) => {
      // No split may begin to name it meanwhile.
      await this.stores.endpoints.lockNames(tx, [name]);
      const before = await this.stores.endpoints.lock(tx, name);
      if (!before?.spec) throw unknownEndpoint(name);
      requireGeneration(`endpoint ${name}`, before, options.expectedGeneration, null, null);
      const users = await this.stores.splits.naming(tx, name);
      if (users.length > 0) throw inUse(name, users);
      await this.refuseAsked(tx, name);
      const generation = before.generation + 1;
      const reason = options.reason ?? '';
      const { status } = before;
      await this.stores.endpoints.put(tx, { name, generation, spec: null, status, actor: actor.name, reason });
      await this.changes.record(tx, actor, 'endpoint.remove', name, { generation, reason });
      await this.moveTraffic(tx, name, before.spec, null);
      await this.workStore.enqueue(tx, work.endpoint, name);
    });
  }

  /** What a rollout said holds as long as the endpoint is progressive, and no longer; whoever moves the traffic is told. */
  private async moveTraffic(tx: Tx, name: string, before: EndpointSpec | null, after: EndpointSpec | null) {
    const [was, is] = [before, after].map((spec) => spec?.traffic.mode === 'progressive');
    if (was !== is) await this.stores.traffic.forget(tx, name);
    if (was || is) await this.workStore.enqueue(tx, rolloutWork, name);
  }

  /** What a put of this spec would throw; answers the row in force. */
  async check(tx: Tx, spec: EndpointSpec, expectedGeneration: number | undefined): Promise<EndpointRow | undefined> {
    const before = await this.stores.endpoints.get(tx, spec.name);
    await this.checkPut(tx, spec, before, { verb: 'apply', expectedGeneration });
    return before;
  }

  private async checkPut(
    tx: Tx,
    spec: EndpointSpec,
    before: EndpointRow | undefined,
    options: PutOptions,
  ): Promise<void> {
    const { verb, expectedGeneration: expected } = options;
    if (verb === 'create' && before?.spec)
      throw new AppError('conflict', `endpoint ${spec.name} exists; update it, or choose another name`, {
        details: { generation: before.generation, changes: diffSpecs(before.spec, spec) },
      });
    if ((verb === 'replace' || verb === 'rollback') && !before?.spec && !(verb === 'rollback' && before))
      throw unknownEndpoint(spec.name);
    if (expected !== undefined) {
      const base = await this.stores.endpoints.generation(tx, spec.name, expected);
      requireGeneration(`endpoint ${spec.name}`, before, expected, spec, base?.spec ?? null);
    }
    const parent = splitVersionLabel(spec.name)?.parent ?? null;
    const others = await this.stores.endpoints.relatives(tx, spec.name, parent);
    const named = { name: spec.name, onlyVersion: spec.model.version ?? null };
    const splits = await this.stores.splits.relatives(tx, spec.name, parent);
    const pipelines = await this.stores.pipelines.relatives(tx, spec.name, parent);
    const hidden =
      nameConflict(named, others) ??
      splitsInTheWay(spec, before?.spec ?? null, splits) ??
      pipelinesInTheWay(named, pipelines) ??
      pipelineWishBroken(spec, await this.stores.pipelines.naming(tx, spec.name));
    if (hidden) throw new AppError('conflict', hidden);
  }

  private async refuseAsked(tx: Tx, name: string): Promise<void> {
    const users = await this.stores.pipelines.naming(tx, name);
    if (users.length === 0) return;
    const words = pipelineUsersText(name, users);
    throw new AppError('conflict', `endpoint ${name} is in use by ${words}; change or remove the pipeline first`, {
      details: { pipelines: users.map((pipeline) => pipeline.name) },
    });
  }
}

export const unknownEndpoint = (name: string) =>
  new AppError('not_found', `endpoint ${name} does not exist; "perch endpoint list" shows those that do`);

const inUse = (name: string, users: readonly NamingSplit[]) =>
  new AppError(
    'conflict',
    `endpoint ${name} is in use by ${usersText(name, users)}; change or remove the split first`,
    {
      details: { splits: users.map((split) => split.name) },
    },
  );
