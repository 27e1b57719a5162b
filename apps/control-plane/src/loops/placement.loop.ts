import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DesiredReconcile, ServerService, SweepReconcile, theOnlyKey, work } from '@perch/fleet';
import { Coalescing, pause } from '@perch/platform';
import { LoopRunner } from '@perch/platform/database';

const resyncMs = 60_000;
const sweepMs = 2_000;

/** What each server should hold follows the placements; servers that went quiet are noticed. */
@Injectable()
export class PlacementLoop implements OnModuleInit {
  private readonly coalescing = new Coalescing(50, 800);

  constructor(
    private readonly runner: LoopRunner,
    private readonly desired: DesiredReconcile,
    private readonly servers: ServerService,
    private readonly sweeping: SweepReconcile,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind: work.server,
      reconcile: async (id, signal) => {
        // The first change goes out at once; those that follow it closely go out together.
        await pause(this.coalescing.waitMs(id, performance.now()), signal);
        await this.desired.publishDesired(id);
        this.coalescing.note(id, performance.now());
        return { again: 'on-change' };
      },
      resync: { everyMs: resyncMs, keys: () => this.servers.ids() },
      concurrency: 12,
    });
    this.runner.register({
      kind: work.sweep,
      reconcile: async () => {
        await this.sweeping.sweep();
        return { again: 'after', ms: sweepMs };
      },
      resync: { everyMs: resyncMs, keys: async () => [theOnlyKey] },
      concurrency: 1,
    });
  }
}
