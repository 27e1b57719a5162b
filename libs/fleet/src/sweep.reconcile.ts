import { Inject, Injectable } from '@nestjs/common';
import { systemActor } from '@perch/contracts';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { FleetStore } from './fleet.store.ts';
import { asleepMs, FLEET_OPTIONS, type FleetOptions, serverAsleepMs } from './options.ts';
import { theOnlyKey, work } from './work.ts';

/** Notices who went quiet. Silence counts only from when somebody began to watch, so that a restored dump damns nobody. */
@Injectable()
export class SweepReconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: FleetStore,
    private readonly workStore: WorkStore,
    @Inject(FLEET_OPTIONS) private readonly options: FleetOptions,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  async sweep(): Promise<void> {
    await this.transactions.run(async (tx) => {
      await tx.query(
        `update installation set last_sweep_at = now(),
           watching_since = case when now() - last_sweep_at > $1 * interval '1 millisecond' then now()
                            else watching_since end,
           servers_watched_since = case when now() - last_sweep_at > $2 * interval '1 millisecond' then now()
                                   else servers_watched_since end`,
        [asleepMs(this.options), serverAsleepMs(this.options)],
      );
      const { serverSilentMs, serverLostMs } = this.options;
      for (const { id, pool, presence } of await this.stores.servers.sweep(tx, serverSilentMs, serverLostMs)) {
        await this.changes.record(tx, systemActor, `server.${presence}`, id, { pool });
        await this.wake(tx, id, pool);
      }
    });
  }

  private async wake(tx: Tx, server: string, pool: string): Promise<void> {
    for (const endpoint of await this.stores.placements.endpointsOn(tx, server))
      await this.workStore.enqueue(tx, work.endpoint, endpoint);
    await this.workStore.enqueue(tx, work.pool, pool);
    await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
  }
}
