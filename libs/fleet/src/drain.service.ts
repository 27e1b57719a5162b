import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, type Server, systemActor } from '@perch/contracts';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { FleetStore } from './fleet.store.ts';
import { work } from './work.ts';

export interface DrainOptions {
  reason: string;
  /** Do not wait until its deployments are ready elsewhere. */
  force: boolean;
}

const leavingReason = 'its agent was told to end';

/**
 * Takes servers out of service and back. A drained server gets nothing new; what it serves goes when it is ready
 * elsewhere (`planPlacement`), and is let go of when no router can send to it any more (the retiring of placements).
 */
@Injectable()
export class DrainService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: FleetStore,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /** Id of the server. Throws `not_found`, or `conflict` when several have the name. */
  async idOf(key: string): Promise<string> {
    return (await this.find(this.transactions.manager, key)).id;
  }

  /** Again: another reason, or by force. Throws `not_found`, `conflict`. */
  async drain(actor: Actor, key: string, { reason, force }: DrainOptions): Promise<string> {
    return this.transactions.run(async (tx) => {
      const { id, name, pool } = await this.find(tx, key);
      await this.begin(tx, actor, { id, name, pool }, reason, force);
      return id;
    });
  }

  /** Back in service; what failed there may be tried again. Throws `not_found`, `conflict`. */
  async undrain(actor: Actor, key: string, reason: string): Promise<string> {
    return this.transactions.run(async (tx) => {
      const server = await this.find(tx, key);
      await this.end(tx, actor, server, reason);
      return server.id;
    });
  }

  /** An agent that was told to end drains its server; when it reports without that again, it is back. Answers who drains it now. */
  async followLeaving(tx: Tx, id: string, drainedBy: string | null, leaving: boolean): Promise<string | null> {
    if (leaving && drainedBy === null) {
      await this.begin(tx, systemActor, await this.find(tx, id), leavingReason, false);
      return systemActor.name;
    }
    if (leaving || drainedBy !== systemActor.name) return drainedBy;
    await this.end(tx, systemActor, await this.find(tx, id), 'its agent is back');
    return null;
  }

  private async begin(
    tx: Tx,
    actor: Actor,
    { id, name, pool }: { id: string; name: string; pool: string },
    reason: string,
    forced: boolean,
  ) {
    // Nobody places anything on it any more once this is committed: placing reads the servers under the same lock.
    await this.stores.capacity.lockPool(tx, pool);
    await this.stores.servers.drain(tx, id, actor.name, reason, forced);
    await this.changes.record(tx, actor, 'server.drain', id, { name, pool, reason, forced });
    await this.wake(tx, await this.stores.placements.endpointsOn(tx, id));
  }

  private async end(
    tx: Tx,
    actor: Actor,
    { id, name, pool }: { id: string; name: string; pool: string },
    reason: string,
  ) {
    if (!(await this.stores.servers.undrain(tx, id))) return;
    await this.stores.capacity.forgetFailures(tx, id);
    await this.changes.record(tx, actor, 'server.undrain', id, { name, pool, reason });
    await this.wake(tx, await this.stores.placements.endpointsOn(tx, id));
    await this.workStore.enqueue(tx, work.pool, pool);
  }

  private async find(tx: Tx, key: string) {
    const found = await this.stores.servers.find(tx, key);
    const [server] = found;
    if (!server) throw new AppError('not_found', `server ${key} does not exist; "perch fleet servers" shows them`);
    if (found.length > 1 && server.id !== key)
      throw new AppError(
        'conflict',
        `${found.length} servers are called ${key}; name one by its id: ${found.map(({ id }) => id).join(', ')}`,
      );
    return server;
  }

  /** No placement is left on it: no table in force at a live router holds it, and nothing of it is in flight. */
  async isDrained(tx: Tx, id: string): Promise<boolean> {
    return (await this.stores.placements.endpointsOn(tx, id)).length === 0;
  }

  /** How it stands with every server that is out of service, by id. */
  async views(tx: Tx): Promise<Map<string, NonNullable<Server['drain']>>> {
    const rows = await this.stores.servers.drains(tx);
    if (rows.length === 0) return new Map();
    const left = await this.stores.placements.leftOn(
      tx,
      rows.map(({ server_id }) => server_id),
    );
    return new Map(
      rows.map((row) => {
        const waitsFor = left.filter(({ server }) => server === row.server_id).map(waitsText);
        const { since, by_name: by, reason, forced } = row;
        return [
          row.server_id,
          { since: since.toISOString(), by, reason, forced, drained: waitsFor.length === 0, waitsFor },
        ];
      }),
    );
  }

  private async wake(tx: Tx, endpoints: readonly string[]): Promise<void> {
    for (const endpoint of endpoints) await this.workStore.enqueue(tx, work.endpoint, endpoint);
  }
}

const waitsText = ({ endpoint, state, waits }: { endpoint: string; state: string; waits: string | null }) =>
  `${endpoint}: ${state === 'leaving' ? 'routers to send no more requests here' : (waits ?? 'to be looked at')}`;
