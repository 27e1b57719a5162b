import { Injectable, type OnModuleInit } from '@nestjs/common';
import { EndpointReconcile, FanOutReconcile } from '@perch/endpoints';
import { work } from '@perch/fleet';
import { LoopRunner } from '@perch/platform/database';
import { modelWork } from '@perch/registry';

/** All endpoints are looked at so often, so that a lost wake-up costs time and nothing else. */
const resyncMs = 120_000;

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
      resync: { everyMs: resyncMs, keys: () => this.fanOut.allEndpoints() },
      concurrency: 6,
    });
  }
}
