import { Injectable } from '@nestjs/common';
import { systemActor } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { BlobRemovalService } from './blob-removal.service.ts';
import { ModuleStore } from './module.store.ts';
import { VersionStore } from './version.store.ts';
import { VersionChangeService } from './version-change.service.ts';

/** After the end of an upload's time: for a PUT that began just before it, and for clocks that differ. */
const graceMs = 3_600_000;
const atOnce = 200;

export interface Swept {
  /** Versions whose upload was given up. */
  versions: number;
  /** The same of modules. */
  modules: number;
  /** Objects that nothing refers to any more. */
  blobs: number;
  /** Multipart uploads that no blob knows. */
  uploads: number;
}

/** Takes away what uploads leave behind; S3 servers refuse the lifecycle rule that would do it. Safe to run anywhere, any time. */
@Injectable()
export class SweepService {
  constructor(
    private readonly transactions: Transactions,
    private readonly versions: VersionStore,
    private readonly modules: ModuleStore,
    private readonly changes: VersionChangeService,
    private readonly removal: BlobRemovalService,
  ) {}

  /** One pass; at most 200 of each kind, the rest next time. */
  async sweepUploads(now: Date): Promise<Swept> {
    const before = new Date(now.getTime() - graceMs);
    return {
      versions: (await this.giveUpVersions(before)).length,
      modules: (await this.giveUpModules(before)).length,
      blobs: await this.removal.removeLoose(before, atOnce),
      uploads: (await this.removal.abortUnknownUploads(before, atOnce)).length,
    };
  }

  /** Versions whose upload's time was over at `before`: `project/name@3`, at most `limit`. */
  async giveUpVersions(before: Date, limit = atOnce, dryRun = false): Promise<string[]> {
    const names: string[] = [];
    for (const { id, number, model } of await this.versions.abandoned(this.transactions.manager, before, limit)) {
      const gone = await this.transactions.run(async (tx) => {
        const version = await this.versions.lock(tx, model.project, model.name, number);
        if (version.state !== 'uploading' || version.uploadExpiresAt >= before) return false; // resumed or completed
        if (dryRun) return true;
        await this.versions.delete(tx, id);
        await this.changes.record(tx, systemActor, 'version.abandon', version);
        return true;
      });
      if (gone) names.push(`${model.project}/${model.name}@${number}`);
    }
    return names;
  }

  /** Modules whose upload's time was over at `before`, by name; they never had a number. */
  async giveUpModules(before: Date, limit = atOnce, dryRun = false): Promise<string[]> {
    const names: string[] = [];
    for (const { id, name } of await this.modules.abandoned(this.transactions.manager, before, limit))
      if (dryRun || (await this.modules.giveUp(this.transactions.manager, id, before))) names.push(name);
    return names;
  }
}
