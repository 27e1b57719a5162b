import { Injectable, type OnModuleInit } from '@nestjs/common';
import { rolloutWork, TrafficService } from '@perch/endpoints';
import { LoopRunner, Transactions } from '@perch/platform/database';
import { RolloutReconcile } from '@perch/promotion';

const resyncMs = 5_000;
const resyncAtOnce = 10;

/** Each endpoint's rollout goes a step further when its evidence, its deployments or the time say so. */
@Injectable()
export class PromotionLoop implements OnModuleInit {
  /** Where the last round ended. */
  private seen = '';

  constructor(
    private readonly runner: LoopRunner,
    private readonly transactions: Transactions,
    private readonly rollouts: RolloutReconcile,
    private readonly traffic: TrafficService,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind: rolloutWork,
      reconcile: (endpoint) => this.rollouts.reconcile(endpoint),
      resync: { everyMs: resyncMs, keys: () => this.someNames() },
    });
  }

  /** Progressive endpoints in parts, round and round: a lost wake-up costs time and nothing else. */
  private async someNames(): Promise<string[]> {
    const names = await this.traffic.someNames(this.transactions.manager, this.seen, resyncAtOnce);
    this.seen = names.length < resyncAtOnce ? '' : names.at(-1)!;
    return names;
  }
}
