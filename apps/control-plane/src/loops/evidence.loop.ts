import { Injectable, type OnModuleInit } from '@nestjs/common';
import { LoopRunner } from '@perch/platform/database';
import { HistoryReconcile, ProvidedReconcile } from '@perch/promotion';

const historyMs = 60_000;
const providedMs = 5_000;

/** What evidence needs beside the reports of routers: the day before of progressive endpoints, and what users' Prometheus servers say. */
@Injectable()
export class EvidenceLoop implements OnModuleInit {
  constructor(
    private readonly runner: LoopRunner,
    private readonly history: HistoryReconcile,
    private readonly provided: ProvidedReconcile,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind: 'traffic-history',
      reconcile: async () => {
        await this.history.look();
        return { again: 'on-change' };
      },
      resync: { everyMs: historyMs, keys: async () => ['all'] },
      concurrency: 1,
    });
    this.runner.register({
      kind: 'provided-evidence',
      reconcile: async (endpoint) => {
        await this.provided.read(endpoint);
        return { again: 'on-change' };
      },
      resync: { everyMs: providedMs, keys: () => this.provided.endpoints() },
    });
  }
}
