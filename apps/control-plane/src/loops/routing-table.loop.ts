import { Injectable, type OnModuleInit } from '@nestjs/common';
import { RoutingTableReconcile } from '@perch/endpoints';
import { theOnlyKey, work } from '@perch/fleet';
import { LoopRunner } from '@perch/platform/database';

const resyncMs = 30_000;
/** So many splits are compiled again each time without being asked. */
const splitsAtOnce = 10;

/** The routing table follows the routes of endpoints, the servers and the keys. */
@Injectable()
export class RoutingTableLoop implements OnModuleInit {
  constructor(
    private readonly runner: LoopRunner,
    private readonly table: RoutingTableReconcile,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind: work.routingTable,
      reconcile: async (_key, signal) => {
        await this.table.publish(signal);
        return { again: 'on-change' };
      },
      resync: {
        everyMs: resyncMs,
        keys: async () => {
          await this.table.lookAgain(splitsAtOnce);
          return [theOnlyKey];
        },
      },
      concurrency: 1,
    });
  }
}
