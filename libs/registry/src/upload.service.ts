import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type CreateVersion,
  checkManifest,
  createVersion,
  manifestDigest,
  modelName,
  parseWith,
  plainUses,
  projectName,
  type VersionUpload,
} from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { BlobService } from './blob.service.ts';
import { guessFramework } from './framework.decide.ts';
import type { ModelEntity } from './model.entity.ts';
import { pickledModels } from './pickle.decide.ts';
import type { VersionEntity } from './version.entity.ts';
import { checkSizes, describingChange, tagsChange, totalBytes } from './version.plan.ts';
import { nameOf, toVersion, VersionStore } from './version.store.ts';
import { VersionChangeService } from './version-change.service.ts';
import { VersionNumberService } from './version-number.service.ts';

/** How long an upload may take, counted from its last (re)start; its signed URLs live as long. */
export const uploadLifeMs = 24 * 3_600_000;

const deadline = (): Date => new Date(Date.now() + uploadLifeMs);

export interface StartedUpload {
  version: VersionEntity;
  /** Made just now, so nothing of it can have arrived. */
  fresh: boolean;
}

/** Begins versions, and tells how to go on with those begun. */
@Injectable()
export class UploadService {
  constructor(
    private readonly transactions: Transactions,
    private readonly numbers: VersionNumberService,
    private readonly versions: VersionStore,
    private readonly blobs: BlobService,
    private readonly changes: VersionChangeService,
  ) {}

  async create(actor: Actor, project: string, name: string, wish: CreateVersion): Promise<VersionUpload> {
    const { version, fresh } = await this.start(actor, project, name, wish);
    return this.answer(version, fresh);
  }

  /** The version that is to take these bytes, new or going on; nothing is signed yet. */
  async start(actor: Actor, project: string, name: string, wish: CreateVersion): Promise<StartedUpload> {
    parseWith(projectName, project, `project ${JSON.stringify(project)}`);
    parseWith(modelName, name, `model ${JSON.stringify(name)}`);
    const checked = parseWith(createVersion, wish, `version of ${project}/${name}`);
    checkManifest(checked.files);
    checkSizes(checked.files);
    pickledModels(checked);
    const digest = manifestDigest(checked.files);
    const { number, fresh } = await this.transactions.run(async (tx) => {
      const model = await this.numbers.lock(tx, project, name);
      const same = await this.versions.sameBytes(tx, model.id, digest, {
        uses: plainUses(checked.uses),
        processing: checked.processing ?? null,
      });
      if (same === undefined) return { number: await this.begin(tx, actor, model, checked, digest), fresh: true };
      await this.goOn(tx, actor, await this.versions.lock(tx, project, name, same), checked);
      return { number: same, fresh: false };
    });
    return { version: await this.versions.get(this.transactions.manager, project, name, number), fresh };
  }

  async resume(project: string, name: string, number: number): Promise<VersionUpload> {
    const version = await this.transactions.run(async (tx) => {
      const found = await this.versions.lock(tx, project, name, number);
      if (found.state === 'archived') throw new AppError('invalid', `${nameOf(found)} is archived; restore it first`);
      if (found.state !== 'uploading') return found;
      const uploadExpiresAt = deadline();
      await this.versions.change(tx, found.id, { uploadExpiresAt });
      return Object.assign(found, { uploadExpiresAt });
    });
    return this.answer(version, false);
  }

  private async begin(tx: Tx, actor: Actor, model: ModelEntity, wish: CreateVersion, digest: string): Promise<number> {
    const { project, name } = model;
    const claim = { project, name, manifestDigest: digest, author: actor.name, claimedAt: new Date().toISOString() };
    const number = await this.numbers.next(tx, model, claim);
    const id = randomUUID();
    await this.versions.insert(tx, {
      id,
      modelId: model.id,
      number,
      state: 'uploading',
      manifestDigest: digest,
      sizeBytes: totalBytes(wish.files),
      framework: wish.framework ?? guessFramework(wish.files.map((file) => file.path)),
      tags: [...new Set(wish.tags)].sort(),
      description: wish.description ?? '',
      metadata: wish.metadata ?? {},
      lineage: wish.lineage ?? {},
      uses: plainUses(wish.uses),
      processing: wish.processing ?? null,
      author: actor.name,
      uploadExpiresAt: deadline(),
    });
    const placed = await this.blobs.place(tx, wish.files, actor);
    await this.versions.insertFiles(
      tx,
      id,
      wish.files.map((file) => ({ ...file, blobId: placed.get(file.sha256) as string })),
    );
    const pickled = pickledModels(wish);
    const allowed = pickled.length > 0 ? { allowPickle: pickled } : {};
    await this.changes.record(tx, actor, 'version.create', { model, number }, { manifestDigest: digest, ...allowed });
    return number;
  }

  /** The same bytes once more: the version that has them takes the new words and tags, and its upload more time. */
  private async goOn(tx: Tx, actor: Actor, version: VersionEntity, wish: CreateVersion): Promise<void> {
    const tags = tagsChange(version.tags, { add: wish.tags ?? [], remove: [] }, nameOf(version));
    const change = { ...describingChange(version, wish), ...(tags ? { tags } : {}) };
    if (Object.keys(change).length > 0) await this.changes.record(tx, actor, 'version.describe', version, change);
    const more = version.state === 'uploading' ? { uploadExpiresAt: deadline() } : {};
    await this.versions.change(tx, version.id, { ...change, ...more });
  }

  private async answer(version: VersionEntity, fresh: boolean): Promise<VersionUpload> {
    const files = await this.versions.files(this.transactions.manager, version.id);
    const open = version.state === 'uploading';
    const missing = open ? await this.blobs.missing(version.id, version.uploadExpiresAt, fresh) : [];
    return { version: toVersion(version, files), missing };
  }
}
