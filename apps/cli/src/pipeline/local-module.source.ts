import {
  AppError,
  type DownloadUrl,
  type ManifestFile,
  type PipelineNode,
  type ProcessingModuleRecord,
  splitModule,
} from '@perch/contracts';
import type { FileSource } from '@perch/processing';
import type { LoadedProcessing, ModuleHost } from '@perch/processing/host';
import { filesOf } from '../processing/fixture-set.ts';
import { type PreparedModule, prepareModule } from '../processing/prepared-module.ts';

/** Where registered modules are had from. */
export interface RegisteredModules {
  /** Without a number the newest. */
  find(name: string, number?: number): Promise<ProcessingModuleRecord>;
  urls(module: ProcessingModuleRecord): Promise<DownloadUrl[]>;
  bytes(url: string): Promise<Buffer>;
}

interface Source {
  module: Pick<ProcessingModuleRecord, 'name' | 'number' | 'digest' | 'facts'> & { files: ManifestFile[] };
  files: FileSource;
}

/** The modules of a pipeline that runs here: from folders, else as they are registered. */
export class LocalModules {
  private readonly folders: Readonly<Record<string, string>>;
  private readonly registered: () => Promise<RegisteredModules>;
  private readonly prepared: PreparedModule[] = [];
  private readonly loaded: LoadedProcessing[] = [];
  private host: ModuleHost | undefined;

  constructor(folders: Readonly<Record<string, string>>, registered: () => Promise<RegisteredModules>) {
    this.folders = folders;
    this.registered = registered;
  }

  /** Loaded modules by node. */
  async load(nodes: readonly [string, PipelineNode][]): Promise<Map<string, LoadedProcessing>> {
    const found = new Map<string, LoadedProcessing>();
    for (const [node, { module, isolation = 'worker', options = {} }] of nodes) {
      if (module === undefined) continue;
      const { ModuleHost: Host } = await import('@perch/processing/host');
      this.host ??= new Host(() => undefined);
      const source = await this.sourceOf(module);
      const signature = { inputs: [], outputs: [] };
      const one = await this.host.load({ ...source, isolation, options, signature, maxBatchSize: 0 });
      this.loaded.push(one);
      found.set(node, one);
    }
    return found;
  }

  async close(): Promise<void> {
    for (const one of this.loaded) await one.unload();
    this.host?.close();
    for (const one of this.prepared) await one.close();
  }

  private async sourceOf(reference: string): Promise<Source> {
    const { name, number } = splitModule(reference);
    const folder = this.folders[name];
    if (folder !== undefined) {
      const prepared = await prepareModule(folder);
      this.prepared.push(prepared);
      const { digest, facts, manifest } = prepared;
      return { module: { name, number: number ?? 1, digest, facts, files: manifest }, files: filesOf(prepared) };
    }
    const registered = await this.registered();
    const module = await registered.find(name, number);
    return { module, files: await downloaded(registered, module) };
  }
}

async function downloaded(registered: RegisteredModules, module: ProcessingModuleRecord): Promise<FileSource> {
  const urls = new Map((await registered.urls(module)).map(({ path, url }) => [path, url]));
  return {
    list: () => [...urls.keys()],
    async read(path) {
      const url = urls.get(path);
      if (!url) throw new AppError('not_found', `module ${module.name}@${module.number} has no file ${path}`);
      return registered.bytes(url);
    },
  };
}
