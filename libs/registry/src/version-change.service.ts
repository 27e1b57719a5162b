import { Inject, Injectable } from '@nestjs/common';
import type { Actor } from '@perch/contracts';
import { CHANGE_LOG, type ChangeLog, type Tx, WorkStore } from '@perch/platform/database';
import type { VersionEntity } from './version.entity.ts';

/** Kind of work that a changed version asks for; its key is `<project>/<name>`. */
export const modelWork = 'model';

/** What every change of a version leaves behind, in its own transaction: who did what, and a wake-up for its model. */
@Injectable()
export class VersionChangeService {
  constructor(
    @Inject(CHANGE_LOG) private readonly log: ChangeLog,
    private readonly work: WorkStore,
  ) {}

  /** `version` as it was read before the change; its model must be loaded. */
  async record(
    tx: Tx,
    actor: Actor,
    action: string,
    version: Pick<VersionEntity, 'model' | 'number'>,
    detail: Record<string, unknown> = {},
  ): Promise<void> {
    const model = `${version.model.project}/${version.model.name}`;
    await this.log.record(tx, actor, action, `${model}/${version.number}`, detail);
    await this.work.enqueue(tx, modelWork, model);
  }
}
