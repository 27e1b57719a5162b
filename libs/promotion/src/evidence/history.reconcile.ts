import { Injectable } from '@nestjs/common';
import { Transactions } from '@perch/platform/database';
import { FeedbackStore } from './feedback.store.ts';
import { planHistory } from './history.plan.ts';
import { TrafficHistoryStore } from './traffic-history.store.ts';

const mostAtOnce = 200;

/** Notes by hours what routers counted for progressive endpoints, so that a rollout finds the day before its start; and clears what is over. */
@Injectable()
export class HistoryReconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: TrafficHistoryStore,
    private readonly feedback: FeedbackStore,
  ) {}

  /** To be done about once a minute; twice is harmless, and what a missed one would have noted is noted by the next. */
  async look(): Promise<void> {
    for (let after: string | undefined = ''; after !== undefined; ) after = await this.lookAtSome(after);
    await this.transactions.run(async (tx) => {
      await this.store.sweep(tx);
      await this.feedback.sweep(tx);
    });
  }

  /** The last name looked at; undefined: there are no more. */
  private lookAtSome(after: string): Promise<string | undefined> {
    return this.transactions.run(async (tx) => {
      await this.store.lock(tx);
      const watched = await this.store.watched(tx, after, mostAtOnce);
      if (watched.length === 0) return undefined;
      const names = watched.map(({ endpoint }) => endpoint);
      const spans = watched.flatMap(({ endpoint, spanMs }) => (spanMs === null ? [] : [[endpoint, spanMs] as const]));
      await this.store.note(tx, names, planHistory(await this.store.changed(tx, names), new Map(spans)));
      return watched.length < mostAtOnce ? undefined : names.at(-1);
    });
  }
}
