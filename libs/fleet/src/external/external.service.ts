import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, type RegisterServer } from '@perch/contracts';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { FleetStore } from '../fleet.store.ts';
import { theOnlyKey, work } from '../work.ts';
import { ExternalStore } from './external.store.ts';

/** Tritons without an agent, as people register them. */
@Injectable()
export class ExternalService {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: ExternalStore,
    private readonly stores: FleetStore,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /** Again under the same name: another address, other headers. Throws `conflict`. Answers the server's id. */
  async register(actor: Actor, server: RegisterServer): Promise<string> {
    return this.transactions.run(async (tx) => {
      await this.stores.capacity.lockPool(tx, server.pool);
      const before = await this.replaceable(tx, server);
      const id = before ?? randomUUID();
      await this.store.put(tx, id, server);
      const { name, pool, url, grpc, mode } = server;
      await this.changes.record(tx, actor, 'server.register', id, { name, pool, url, grpc, mode });
      await this.wake(tx, id, pool);
      return id;
    });
  }

  private async replaceable(tx: Tx, { name, pool, mode }: RegisterServer): Promise<string | undefined> {
    const named = await this.store.named(tx, name);
    const other = named.find((one) => one.name !== name);
    if (other) throw new AppError('conflict', `${name} is the name of a pool; give the server a name that no pool has`);
    const [before] = named;
    if (!before) return undefined;
    if (before.mode === null)
      throw new AppError('conflict', `server ${name} exists and has an agent; choose another name`);
    if (before.pool === pool && before.mode === mode) return before.id;
    const used = await this.stores.placements.endpointsOn(tx, before.id);
    if (used.length > 0)
      throw new AppError(
        'conflict',
        `server ${name} serves ${used.join(', ')}; its pool and mode stay while it does (perch fleet drain ${name} first)`,
      );
    return before.id;
  }

  /** Throws `not_found`, or `conflict` while it is in use or holds a model that we loaded. */
  async unregister(actor: Actor, key: string, force: boolean): Promise<void> {
    await this.transactions.run(async (tx) => {
      const [found] = await this.stores.servers.find(tx, key);
      if (!found) throw new AppError('not_found', `server ${key} does not exist; "perch fleet servers" shows them`);
      await this.stores.servers.lock(tx, found.id);
      const server = await this.store.get(tx, found.id);
      if (!server)
        throw new AppError('conflict', `server ${key} has an agent; stop the agent, and it is forgotten by itself`);
      const used = await this.stores.placements.endpointsOn(tx, found.id);
      if (used.length > 0)
        throw new AppError(
          'conflict',
          `server ${found.name} is in use by ${used.join(', ')}; perch fleet drain ${found.name} first, and wait until it is drained`,
        );
      const ours = [...(await this.stores.servers.models(tx, found.id)).keys()].filter((name) => !name.includes('/'));
      if (ours.length > 0 && !force)
        throw new AppError(
          'conflict',
          `server ${found.name} still holds ${ours.join(', ')}, which is being unloaded; try again in a moment, or with --force if it is gone for good`,
        );
      await this.store.remove(tx, found.id);
      await this.changes.record(tx, actor, 'server.unregister', found.id, { name: found.name, force });
      await this.wake(tx, found.id, found.pool);
    });
  }

  private async wake(tx: Tx, id: string, pool: string): Promise<void> {
    await this.workStore.enqueue(tx, work.external, id);
    await this.workStore.enqueue(tx, work.source, id);
    await this.workStore.enqueue(tx, work.pool, pool);
    await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
  }
}
