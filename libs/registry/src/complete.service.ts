import { Injectable } from '@nestjs/common';
import { type Actor, AppError, type Version } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { type BlobFault, BlobVerifyService } from './blob-verify.service.ts';
import { InspectionService } from './inspection.service.ts';
import type { UploadFault } from './upload-checks.ts';
import type { VersionEntity } from './version.entity.ts';
import { nameOf, toVersion, VersionStore } from './version.store.ts';
import { VersionChangeService } from './version-change.service.ts';
import type { VersionFileEntity } from './version-file.entity.ts';

/** Turns an upload into a version whose bytes never change again. */
@Injectable()
export class CompleteService {
  /** Checks under way in this process: a client that asks again while bytes are hashed joins instead of hashing twice. */
  private readonly running = new Map<string, Promise<Version>>();

  constructor(
    private readonly transactions: Transactions,
    private readonly versions: VersionStore,
    private readonly verify: BlobVerifyService,
    private readonly inspection: InspectionService,
    private readonly changes: VersionChangeService,
  ) {}

  async complete(actor: Actor, project: string, name: string, number: number): Promise<Version> {
    const version = await this.versions.get(this.transactions.manager, project, name, number);
    const under = this.running.get(version.id);
    if (under) return under;
    const check = this.run(actor, version).finally(() => this.running.delete(version.id));
    this.running.set(version.id, check);
    return check;
  }

  private async run(actor: Actor, version: VersionEntity): Promise<Version> {
    const files = await this.versions.files(this.transactions.manager, version.id);
    if (version.state !== 'uploading') return toVersion(version, files);
    const faults = await this.verify.check(version.id);
    if (faults.length > 0) {
      await this.giveFreshKeys(version, faults);
      throw uploadFault(version, files, faults);
    }
    const { signature, facts, faults: wrong } = await this.inspection.inspect(version.id, files);
    if (wrong.length > 0) throw checkFault(version, wrong);
    const { project, name } = version.model;
    return this.transactions.run(async (tx) => {
      const now = await this.versions.lock(tx, project, name, version.number);
      if (now.state !== 'uploading') return toVersion(now, files);
      if (!(await this.verify.holdVerified(tx, now.id)))
        throw new AppError(
          'unavailable',
          `${nameOf(now)}: its bytes changed while it was completed; complete it again`,
        );
      await this.versions.change(tx, now.id, { state: 'draft', completedAt: new Date(), signature, facts });
      await this.changes.record(tx, actor, 'version.complete', now, { manifestDigest: now.manifestDigest });
      return toVersion(await this.versions.get(tx, project, name, version.number), files);
    });
  }

  /** Bytes that are wrong can never become right under their key; the next resume offers a fresh one. */
  private async giveFreshKeys(version: VersionEntity, faults: readonly BlobFault[]): Promise<void> {
    const { project, name } = version.model;
    await this.transactions.run(async (tx) => {
      const now = await this.versions.lock(tx, project, name, version.number);
      if (now.state === 'uploading') await this.verify.replaceSpoilt(tx, now.id, faults);
    });
  }
}

/** What the files say is wrong: other bytes are wanted, and those are another version; what arrived is not sent again. */
function checkFault(version: VersionEntity, faults: readonly UploadFault[]): AppError {
  const words = faults.slice(0, 3).map(({ path, message }) => `${path}: ${message}`);
  const more = faults.length > 3 ? ` (and ${faults.length - 3} more)` : '';
  return new AppError(
    'invalid',
    `${nameOf(version)} cannot be completed: ${words.join('; ')}${more}; correct the file and upload again, files that arrived are not sent twice`,
    { details: { errors: [...faults] } },
  );
}

/** One error for all files at fault, the first three in words; `integrity` when bytes are wrong, else `invalid`. */
function uploadFault(
  version: VersionEntity,
  files: readonly VersionFileEntity[],
  faults: readonly BlobFault[],
): AppError {
  const reasons = new Map(faults.map((fault) => [fault.blob.id, fault]));
  const errors = files.flatMap((file) => {
    const fault = reasons.get(file.blobId);
    return fault ? [{ path: file.path, message: fault.reason }] : [];
  });
  const words = errors.slice(0, 3).map(({ path, message }) => `file ${path}: ${message}`);
  const more = errors.length > 3 ? ` (and ${errors.length - 3} more files)` : '';
  const wrong = faults.some((fault) => fault.kind === 'wrong');
  return new AppError(
    wrong ? 'integrity' : 'invalid',
    `${nameOf(version)} cannot be completed: ${words.join('; ')}${more}; upload what is named again, then complete`,
    { details: { errors } },
  );
}
