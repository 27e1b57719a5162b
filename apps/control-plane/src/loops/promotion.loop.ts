import { Injectable, type OnModuleInit } from '@nestjs/common';
import { rolloutWork } from '@perch/endpoints';
import { LoopRunner } from '@perch/platform/database';
import { RolloutReconcile } from '@perch/promotion';

/** So many endpoints are looked at each time without being asked: two a second, however many there are. */
const resyncMs = 5_000;
const resyncAtOnce = 10;

/** Each endpoint's rollout goes a step further when its evidence, its deployments or the time say so. */
@Injectable()
export class PromotionLoop implements OnModuleInit {
  constructor(
    private readonly runner: LoopRunner,
    private readonly rollouts: RolloutReconcile,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind: rolloutWork,
      reconcile: (endpoint) => this.rollouts.reconcile(endpoint),
      resync: { everyMs: resyncMs, keys: () => this.rollouts.someEndpoints(resyncAtOnce) },
    });
  }
}
