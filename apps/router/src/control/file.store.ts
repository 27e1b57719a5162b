import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, innerMessage, type ManifestFile, type RoutingTable, sha256Hex } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { FileReader } from '../serving/processing.store.ts';
import type { ControlClient } from './control.client.ts';

const parallel = 4;
const hashesPerCall = 200;

/** Of versions, of their modules, and of modules that pipelines run. */
function* filesOf(table: RoutingTable): Generator<ManifestFile> {
  for (const name in table.endpoints) {
    const { targets, pipeline } = table.endpoints[name]!;
    for (const { files, processing } of targets) {
      yield* files;
      if (processing.module) yield* processing.module.files;
    }
    for (const node in pipeline?.modules) yield* pipeline.modules[node]!.module?.files ?? [];
  }
}

/** Small files of versions and modules (tokenizers and the like) by hash: fetched once, verified, kept on disk, verified again on reading. */
export class FileStore implements FileReader {
  private readonly folder: string;
  private readonly client: ControlClient;
  private readonly logger: Logger;
  private readonly here = new Set<string>();

  constructor(folder: string, client: ControlClient, logger: Logger) {
    this.folder = folder;
    this.client = client;
    this.logger = logger;
  }

  async read(sha256: string, size: number): Promise<Buffer> {
    const bytes = await readFile(join(this.folder, sha256)).catch(() => undefined);
    if (!bytes) throw new AppError('unavailable', `file ${sha256} is not on this router yet`);
    if (bytes.length === size && sha256Hex(bytes) === sha256) return bytes;
    this.here.delete(sha256);
    await rm(join(this.folder, sha256), { force: true });
    throw new AppError('integrity', `file ${sha256} was damaged on disk and is fetched again`);
  }

  /** Fetches what the table needs and this machine lacks. Never throws: what is missing shows when it is read. */
  async fetchAll(table: RoutingTable, token: string): Promise<void> {
    const missing = new Map<string, number>();
    await this.list();
    for (const { sha256, size } of filesOf(table)) if (!this.here.has(sha256)) missing.set(sha256, size);
    const hashes = [...missing.keys()];
    for (let from = 0; from < hashes.length; from += hashesPerCall)
      await this.fetchSome(hashes.slice(from, from + hashesPerCall), missing, token);
  }

  /** Removes files that no table in force needs. */
  async keepOnly(table: RoutingTable): Promise<void> {
    const wanted = new Set<string>();
    for (const { sha256 } of filesOf(table)) wanted.add(sha256);
    for (const hash of [...this.here]) {
      if (wanted.has(hash)) continue;
      this.here.delete(hash);
      await rm(join(this.folder, hash), { force: true });
    }
  }

  private async list(): Promise<void> {
    if (this.here.size > 0) return;
    await mkdir(this.folder, { recursive: true });
    for (const name of await readdir(this.folder)) if (/^[0-9a-f]{64}$/.test(name)) this.here.add(name);
  }

  private async fetchSome(hashes: string[], sizes: ReadonlyMap<string, number>, token: string): Promise<void> {
    try {
      const { urls } = await this.client.blobUrls(token, hashes);
      const queue = [...hashes];
      const worker = async () => {
        for (let hash = queue.shift(); hash !== undefined; hash = queue.shift())
          await this.fetchOne(hash, sizes.get(hash)!, urls[hash]?.url);
      };
      await Promise.all(Array.from({ length: parallel }, worker));
    } catch (error) {
      this.logger.warn('files not fetched', { files: hashes.length, reason: innerMessage(error) });
    }
  }

  private async fetchOne(hash: string, size: number, url: string | undefined): Promise<void> {
    try {
      if (url === undefined) throw new AppError('not_found', `the control plane gave no URL for ${hash}`);
      const bytes = await this.client.download(url, size);
      if (bytes.length !== size || sha256Hex(bytes) !== hash)
        throw new AppError('integrity', `file ${hash} came with other bytes than its hash names`);
      const handle = await open(join(this.folder, `${hash}.new`), 'w', 0o644);
      try {
        await handle.write(bytes);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(join(this.folder, `${hash}.new`), join(this.folder, hash));
      this.here.add(hash);
    } catch (error) {
      this.logger.warn('file not fetched', { file: hash, reason: innerMessage(error) });
    }
  }
}
