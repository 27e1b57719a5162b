import { Injectable, type OnModuleInit } from '@nestjs/common';
import { EndpointReconcile, FanOutReconcile } from '@perch/endpoints';
import { work } from '@perch/fleet';
import { LoopRunner } from '@perch/platform/database';
import { modelWork } from '@perch/registry';

/** So many endpoints are looked at each time without being asked: two a second, however many there are. */
const resyncMs = 5_000;
const resyncAtOnce = 10;

/** Model and pool changes wake the endpoints concerned; each endpoint follows its rule, its servers and its routers. */
@Injectable()
export class AutoUpdateLoop implements OnModuleInit {
  constructor(
    private readonly runner: LoopRunner,
    private readonly fanOut: FanOutReconcile,
    private readonly endpoints: EndpointReconcile,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind: modelWork,
      reconcile: async (key) => {
        await this.fanOut.reconcileModel(key);
        return { again: 'on-change' };
      },
    });
    this.runner.register({
      kind: work.pool,
      reconcile: async (pool) => {
        await this.fanOut.reconcilePool(pool);
        return { again: 'on-change' };
      },
    });
    this.runner.register({
      kind: work.endpoint,
      reconcile: (name) => this.endpoints.reconcile(name),
      resync: { everyMs: resyncMs, keys: () => this.fanOut.someEndpoints(resyncAtOnce) },
      concurrency: 6,
    });
  }
}
