import { Injectable } from '@nestjs/common';
import type { EndpointStats, RouterReport } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { RouterStatsStore } from './router-stats.store.ts';

/** What routers counted, as they told it: cumulative, replaceable, never counted twice. */
@Injectable()
export class RouterStatsService {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: RouterStatsStore,
  ) {}

  async take(router: string, { bootId, stats }: Pick<RouterReport, 'bootId' | 'stats'>): Promise<void> {
    if (!stats || Object.keys(stats).length === 0) return;
    await this.transactions.run((tx) => this.store.save(tx, router, bootId, stats));
  }

  async ofEndpoint(endpoint: string): Promise<EndpointStats> {
    return { endpoint, ...(await this.store.ofEndpoint(this.transactions.manager, endpoint)) };
  }
}
