import { Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type BlobUpload,
  checkManifest,
  moduleClaimKey,
  moduleDigest,
  type ProcessingModuleRecord,
  type RegisterModule,
} from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { BlobService } from './blob.service.ts';
import { BlobVerifyService } from './blob-verify.service.ts';
import { ModuleStore } from './module.store.ts';
import { uploadLifeMs } from './upload.service.ts';
import { VersionNumberService } from './version-number.service.ts';

const mostFileBytes = 512 * 1024 ** 2;

export interface OpenUpload {
  id: string;
  missing: BlobUpload[];
}

/** How the bytes of a module come in; the same way as a version's. */
@Injectable()
export class ModuleUploadService {
  constructor(
    private readonly transactions: Transactions,
    private readonly modules: ModuleStore,
    private readonly blobs: BlobService,
    private readonly verify: BlobVerifyService,
    private readonly numbers: VersionNumberService,
  ) {}

  /** The upload of this module, begun or gone on with where it was cut off; or the newest one, when it is the same. */
  async open(
    actor: Actor,
    name: string,
    wish: RegisterModule,
  ): Promise<OpenUpload | { module: ProcessingModuleRecord }> {
    checkManifest(wish.files);
    for (const { path, size } of wish.files)
      if (size > mostFileBytes)
        throw new AppError('too_large', `file ${path} of module ${name} has ${size} bytes, at most ${mostFileBytes}`);
    const uploadExpiresAt = new Date(Date.now() + uploadLifeMs);
    const upload = await this.transactions.run<{ module: ProcessingModuleRecord } | { id: string; fresh: boolean }>(
      async (tx) => {
        await this.modules.lockName(tx, name);
        const newest = await this.modules.find(tx, name);
        if (newest?.digest === digestOf(wish)) return { module: newest };
        const found = await this.modules.uploadOf(tx, name, digestOf(wish));
        if (!found) return { id: await this.begin(tx, actor, name, wish, uploadExpiresAt), fresh: true };
        await this.modules.change(tx, found.id, { uploadExpiresAt });
        return { id: found.id, fresh: false };
      },
    );
    if ('module' in upload) return upload;
    return { id: upload.id, missing: await this.blobs.missing(upload.id, uploadExpiresAt, upload.fresh) };
  }

  /** Throws `invalid` or `integrity` naming the files whose bytes are not there or are wrong. */
  async prove(id: string, name: string, wish: RegisterModule): Promise<void> {
    const faults = await this.verify.check(id);
    if (faults.length === 0) return;
    await this.transactions.run((tx) => this.verify.replaceSpoilt(tx, id, faults));
    const reasons = new Map(faults.map(({ blob, reason }) => [blob.sha256, reason]));
    const errors = wish.files.flatMap(({ path, sha256 }) =>
      reasons.has(sha256) ? [{ path, message: reasons.get(sha256) as string }] : [],
    );
    const words = errors.slice(0, 3).map(({ path, message }) => `file ${path}: ${message}`);
    throw new AppError(
      faults.some(({ kind }) => kind === 'wrong') ? 'integrity' : 'invalid',
      `module ${name} cannot be registered: ${words.join('; ')}; send what is missing, then register it again`,
      { details: { errors } },
    );
  }

  /** Gives the proven upload its number, unless somebody who sent the same bytes was first. */
  async number(
    tx: Tx,
    actor: Actor,
    name: string,
    id: string,
    description = '',
  ): Promise<{ module: ProcessingModuleRecord; made: boolean }> {
    const next = await this.modules.lockName(tx, name);
    const upload = await this.modules.byId(tx, id);
    if (upload && upload.number !== null) {
      const module = await this.modules.find(tx, name, upload.number);
      if (module) return { module, made: false };
    }
    if (upload?.number !== null || !(await this.verify.holdVerified(tx, id)))
      throw new AppError('unavailable', `module ${name}: its upload was given up meanwhile; register it again`);
    const claim = { name, digest: upload.digest, author: actor.name, claimedAt: new Date().toISOString() };
    const number = await this.numbers.claim(next, (n) => moduleClaimKey(name, n), claim);
    await this.modules.moveCounter(tx, name, number + 1);
    await this.modules.change(tx, id, { number, registeredAt: new Date(), createdBy: actor.name, description });
    return { module: (await this.modules.find(tx, name, number)) as ProcessingModuleRecord, made: true };
  }

  private async begin(tx: Tx, actor: Actor, name: string, wish: RegisterModule, uploadExpiresAt: Date) {
    const { facts, files, description = '' } = wish;
    const placed = await this.blobs.place(tx, files, actor);
    const row = { name, digest: digestOf(wish), facts, description, createdBy: actor.name, uploadExpiresAt };
    return this.modules.insert(tx, row, files, placed);
  }
}

const digestOf = ({ facts, files }: RegisterModule): string => moduleDigest(facts, files);
