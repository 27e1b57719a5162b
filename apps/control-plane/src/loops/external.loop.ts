import { Injectable, type OnModuleInit } from '@nestjs/common';
import { FanOutReconcile } from '@perch/endpoints';
import { ExternalSource, work } from '@perch/fleet';
import { LoopRunner } from '@perch/platform/database';
import { ExternalReconcile } from './external.reconcile.ts';

const resyncMs = 30_000;
const sourceResyncMs = 120_000;
/** A Triton that does not answer holds a place until its time is over. */
const concurrency = 16;

/** Each Triton without an agent is looked at every second, by one control plane at a time; endpoints served from it follow. */
@Injectable()
export class ExternalLoop implements OnModuleInit {
  constructor(
    private readonly runner: LoopRunner,
    private readonly external: ExternalReconcile,
    private readonly source: ExternalSource,
    private readonly fanOut: FanOutReconcile,
  ) {}

  onModuleInit(): void {
    const keys = () => this.source.ids();
    this.runner.register({
      kind: work.external,
      reconcile: (id) => this.external.reconcile(id),
      resync: { everyMs: resyncMs, keys },
      concurrency,
    });
    this.runner.register({
      kind: work.source,
      reconcile: async (id) => {
        await this.fanOut.reconcileSource(id);
        return { again: 'on-change' };
      },
      resync: { everyMs: sourceResyncMs, keys },
    });
  }
}
