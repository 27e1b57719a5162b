import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { LOGGER, type Logger } from '@perch/platform';
import { LoopRunner, type Outcome } from '@perch/platform/database';
import { SweepService } from '@perch/registry';

const everyMs = 5 * 60_000;

/** Gives up uploads whose time is over and takes away what they left in the store. */
@Injectable()
export class UploadSweepLoop implements OnModuleInit {
  constructor(
    private readonly runner: LoopRunner,
    private readonly uploads: SweepService,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.runner.register({
      kind: 'upload-sweep',
      reconcile: () => this.sweep(new Date()),
      resync: { everyMs, keys: async () => ['all'] },
    });
  }

  async sweep(now: Date): Promise<Outcome> {
    const swept = await this.uploads.sweepUploads(now);
    if (swept.versions + swept.modules + swept.blobs + swept.uploads > 0)
      this.logger.info('uploads swept', { ...swept });
    return { again: 'on-change' };
  }
}
