import { Injectable, type OnModuleInit } from '@nestjs/common';
import { IdempotencyService, KeyService, OutboxService } from '@perch/access';
import { LoopRunner, type Outcome } from '@perch/platform/database';

const everyMs = 60_000;
/** Followers of events that were away longer read the state anew. */
const keepEventsMs = 24 * 3_600_000;

/** Removes what is over: kept answers and old events, and tells the routing table of keys that ran out. */
@Injectable()
export class SweepLoop implements OnModuleInit {
  constructor(
    private readonly runner: LoopRunner,
    private readonly idempotency: IdempotencyService,
    private readonly outbox: OutboxService,
    private readonly keys: KeyService,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind: 'sweep',
      reconcile: (key) => this.sweep(key),
      resync: { everyMs, keys: async () => ['answers', 'events', 'keys'] },
    });
  }

  async sweep(key: string): Promise<Outcome> {
    if (key === 'answers') await this.idempotency.sweep();
    if (key === 'events') await this.outbox.sweep(keepEventsMs);
    if (key === 'keys') await this.keys.announceExpired(2 * everyMs);
    return { again: 'on-change' };
  }
}
