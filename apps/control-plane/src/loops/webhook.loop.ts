import { type BeforeApplicationShutdown, Injectable, type OnModuleInit } from '@nestjs/common';
import { eventChannel, WebhookDeliveryService } from '@perch/access';
import { LoopRunner, Wakeups, WorkStore } from '@perch/platform/database';

const kind = 'webhook';
const resyncMs = 5_000;
/** Events that come closely together are looked at together. */
const gatherMs = 100;
/** A receiver that does not answer holds a place until its time is over. */
const concurrency = 16;

/** Each webhook is told of its events by one control plane at a time; a new event wakes those that wait for it. */
@Injectable()
export class WebhookLoop implements OnModuleInit, BeforeApplicationShutdown {
  private gathering: NodeJS.Timeout | undefined;

  constructor(
    private readonly runner: LoopRunner,
    private readonly work: WorkStore,
    private readonly wakeups: Wakeups,
    private readonly webhooks: WebhookDeliveryService,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind,
      reconcile: (name, signal) => this.webhooks.deliver(name, signal),
      resync: { everyMs: resyncMs, keys: () => this.webhooks.behind() },
      concurrency,
    });
    this.wakeups.on(eventChannel, () => {
      this.gathering ??= setTimeout(() => {
        this.gathering = undefined;
        void this.wake();
      }, gatherMs);
    });
  }

  beforeApplicationShutdown(): void {
    clearTimeout(this.gathering);
  }

  private async wake(): Promise<void> {
    const names = await this.webhooks.behind().catch(() => []); // the resync asks again
    await this.work.enqueueAll(null, kind, names).catch(() => undefined);
  }
}
