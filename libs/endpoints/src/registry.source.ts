import { Injectable } from '@nestjs/common';
import { AppError, type ManifestFile, type ProcessingModuleRecord } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { ModuleService, RegistryService } from '@perch/registry';
import type { ModuleSource } from './resolve/processing.source.ts';
import type { ServableVersion, VersionSource } from './resolve/version.source.ts';

/** A configuration text is small; anything larger is a mistake, and must not be read into memory. */
const maxTextBytes = 262_144;
/** Lists of files that are remembered: some tens of megabytes at most. */
const mostVersions = 2_000;
const mostFiles = 50;

/** The registry of this program. */
@Injectable()
export class RegistrySource implements VersionSource, ModuleSource {
  private readonly files = new Map<string, ManifestFile[]>();

  constructor(
    private readonly registry: RegistryService,
    private readonly modules: ModuleService,
    private readonly transactions: Transactions,
  ) {}

  findModule(name: string, number?: number): Promise<ProcessingModuleRecord | null> {
    return this.modules.find(this.transactions.manager, name, number);
  }

  async moduleNumbers(name: string): Promise<number[]> {
    const known = await this.findModule(name);
    return known ? (await this.modules.numbersOf(name)).map(({ number }) => number) : [];
  }

  async versionsOf(project: string, model: string): Promise<ServableVersion[]> {
    return this.registry.listVersions(project, model);
  }

  async modelsUsing(model: string): Promise<string[]> {
    return this.registry.modelsUsing(model);
  }

  /** Read once: files of a version never change after it is complete, and only such versions are served. */
  async filesOf(versionId: string): Promise<ManifestFile[]> {
    const known = this.files.get(versionId);
    if (known) return known;
    const files = await this.registry.filesOf(versionId);
    if (files.length > 0 && files.length <= mostFiles) {
      if (this.files.size >= mostVersions) this.files.clear();
      this.files.set(versionId, files);
    }
    return files;
  }

  async urlsOf(hashes: readonly string[]): Promise<Map<string, string>> {
    return new Map((await this.registry.blobUrls(hashes)).map(({ sha256, url }) => [sha256, url]));
  }

  async textOf(file: ManifestFile): Promise<string> {
    if (file.size > maxTextBytes)
      throw new AppError(
        'too_large',
        `${file.path} has ${file.size} bytes; a configuration has at most ${maxTextBytes}`,
      );
    const [found] = await this.registry.blobUrls([file.sha256]);
    if (!found) throw new AppError('unavailable', `${file.path} is not in the store now`);
    const reply = await fetch(found.url, { signal: AbortSignal.timeout(10_000) });
    if (!reply.ok) throw new AppError('unavailable', `${file.path} cannot be read now (status ${reply.status})`);
    return reply.text();
  }
}
