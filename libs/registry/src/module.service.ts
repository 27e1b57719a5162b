import { Inject, Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type DownloadUrl,
  type ListModules,
  type ModuleUpload,
  moduleName,
  type ProcessingModuleRecord,
  parseWith,
  type RegisterModule,
  registerModule,
} from '@perch/contracts';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx } from '@perch/platform/database';
import { BlobService } from './blob.service.ts';
import { ModuleStore } from './module.store.ts';
import { ModuleUploadService } from './module-upload.service.ts';

const downloadLifeMs = 15 * 60_000;

/** Who of serving holds back a module that is to go, in words such as `endpoint text/minilm`. */
export type ModuleUsersOf = (tx: Tx, module: ProcessingModuleRecord) => Promise<string[]>;

/** Processing modules as others see them: immutable, numbered for each name, newest first. */
@Injectable()
export class ModuleService {
  constructor(
    private readonly transactions: Transactions,
    private readonly modules: ModuleStore,
    private readonly uploads: ModuleUploadService,
    private readonly blobs: BlobService,
    @Inject(CHANGE_LOG) private readonly log: ChangeLog,
  ) {}

  /** One module, without a number the newest; null: there is none. */
  find(tx: Tx, name: string, number?: number): Promise<ProcessingModuleRecord | null> {
    return this.modules.find(tx, name, number);
  }

  async get(name: string, number?: number): Promise<ProcessingModuleRecord> {
    const found = await this.modules.find(this.transactions.manager, name, number);
    if (!found) throw notFound(name, number);
    return found;
  }

  /** The newest one of each name; one row more than asked for tells that there is a next page. */
  list({ task, name, limit }: Omit<ListModules, 'cursor'>, after?: string): Promise<ProcessingModuleRecord[]> {
    return this.modules.search(this.transactions.manager, { task, name, after, limit });
  }

  /** All of one name, newest first. Throws `not_found` where there is none. */
  async numbersOf(name: string): Promise<ProcessingModuleRecord[]> {
    const found = await this.modules.numbersOf(this.transactions.manager, name);
    if (found.length === 0) throw notFound(name);
    return found;
  }

  /** Says which bytes are to be sent before `register`; asked again after a cut it goes on. */
  async upload(actor: Actor, name: string, body: RegisterModule): Promise<ModuleUpload> {
    const wish = checked(name, body);
    const open = await this.uploads.open(actor, name, wish);
    return 'module' in open ? { module: open.module, missing: [] } : { module: null, missing: open.missing };
  }

  /** With all bytes there and proven the module gets its number; the newest one is answered when it is the same. */
  async register(actor: Actor, name: string, body: RegisterModule): Promise<ProcessingModuleRecord> {
    const wish = checked(name, body);
    const open = await this.uploads.open(actor, name, wish);
    if ('module' in open) return open.module;
    await this.uploads.prove(open.id, name, wish);
    return this.transactions.run(async (tx) => {
      const { module, made } = await this.uploads.number(tx, actor, name, open.id, wish.description);
      const { number, digest, facts } = module;
      if (made) await this.log.record(tx, actor, 'module.register', `${name}@${number}`, { digest, facts });
      return module;
    });
  }

  /** Throws `not_found`, and `conflict` naming who uses it. Its number is never given again. */
  async remove(actor: Actor, name: string, number: number, usersOf: ModuleUsersOf): Promise<void> {
    await this.transactions.run(async (tx) => {
      const id = await this.modules.lock(tx, name, number);
      const module = id && (await this.modules.find(tx, name, number));
      if (!module) throw notFound(name, number);
      refuseUsed(module, await usersOf(tx, module));
      await this.modules.markDeleted(tx, id);
      await this.log.record(tx, actor, 'module.delete', `${name}@${number}`, { digest: module.digest });
    });
  }

  /** Signed GETs (15 min) of its files. */
  async downloads(name: string, number: number): Promise<DownloadUrl[]> {
    const { files } = await this.get(name, number);
    const expiresAt = new Date(Date.now() + downloadLifeMs);
    const hashes = files.map(({ sha256 }) => sha256);
    const urls = new Map((await this.blobs.urls(hashes, expiresAt)).map(({ sha256, url }) => [sha256, url]));
    return files.map((file) => ({ ...file, url: urls.get(file.sha256) as string }));
  }
}

const notFound = (name: string, number?: number): AppError =>
  new AppError('not_found', `module ${name}${number === undefined ? '' : `@${number}`} does not exist`);

function checked(name: string, body: RegisterModule): RegisterModule {
  parseWith(moduleName, name, `module ${JSON.stringify(name)}`);
  return parseWith(registerModule, body, `module ${name}`);
}

function refuseUsed({ name, number }: ProcessingModuleRecord, users: readonly string[]): void {
  if (users.length === 0) return;
  const more = users.length > 5 ? `; and ${users.length - 5} more` : '';
  throw new AppError(
    'conflict',
    `module ${name}@${number} is in use by ${users.slice(0, 5).join('; ')}${more}; take it out of use first`,
    { details: { users } },
  );
}
