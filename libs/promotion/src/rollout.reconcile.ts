import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { systemActor } from '@perch/contracts';
import { TrafficService } from '@perch/endpoints';
import { type Outcome, Transactions } from '@perch/platform/database';
import { RolloutApply } from './rollout.apply.ts';
import { RolloutObserve } from './rollout.observe.ts';
import { isQuiet, planRollout } from './rollout.plan.ts';
import { RolloutStore } from './rollout.store.ts';
import { decideStep } from './statistics/step.decide.ts';

/** One step leads to the next; more at once than this mean that somebody else keeps writing too. */
const stepsAtOnce = 6;

/** Brings the rollout of one endpoint a step further, or starts one: one transaction a step, decided by what is seen in it. */
@Injectable()
export class RolloutReconcile {
  /** Where the last round ended. */
  private seen = '';

  constructor(
    private readonly transactions: Transactions,
    private readonly observing: RolloutObserve,
    private readonly applier: RolloutApply,
    private readonly traffic: TrafficService,
    private readonly store: RolloutStore,
  ) {}

  /** The next of those that a look may concern, in order of names, round and round: a lost wake-up costs time and nothing else. */
  async someEndpoints(most: number): Promise<string[]> {
    const { manager } = this.transactions;
    const progressive = await this.traffic.someNames(manager, this.seen, most);
    const active = await this.store.someActive(manager, this.seen, most);
    const names = [...new Set([...progressive, ...active])].sort().slice(0, most);
    this.seen = names.length < most ? '' : names.at(-1)!;
    return names;
  }

  async reconcile(endpoint: string): Promise<Outcome> {
    let wakeInMs = await this.step(endpoint);
    for (let step = 1; wakeInMs === 0 && step < stepsAtOnce; step += 1) wakeInMs = await this.step(endpoint);
    return wakeInMs === null ? { again: 'on-change' } : { again: 'after', ms: Math.max(50, Math.ceil(wakeInMs)) };
  }

  /** Milliseconds until time alone may ask for another one; null: never. */
  private async step(endpoint: string): Promise<number | null> {
    return this.transactions.run(async (tx) => {
      const world = await this.observing.observe(tx, endpoint);
      const plan = planRollout(world, { decide: decideStep, newId: randomUUID });
      if (!isQuiet(plan, world)) await this.applier.apply(tx, world, plan, systemActor);
      return plan.wakeInMs;
    });
  }
}
