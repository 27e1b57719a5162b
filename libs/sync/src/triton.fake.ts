import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type IndexEntry, type IndexState, parseModelConfig, TritonFault } from '@perch/triton/control';
import type { SyncTriton } from './sync.observe.ts';

/** Rejects when the caller cancels; the load itself goes on. */
const cancelled = (name: string, signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(new TritonFault('cancelled', `load ${name}`, 'Cancelled')));
  });

interface FakeModel {
  /** Number of the version folder it was loaded from. */
  version: number;
  state: IndexState;
  reason: string;
  /** Text of the model file when it was loaded: what would be served. */
  bytes?: string;
}

/**
 * A model server in memory that keeps Triton's rules for a repository folder: explicit loads, one at a time a model,
 * an index of the folders on disk, reasons that stay until the process ends. A model file that begins with `corrupt`
 * fails to load; `hang` stays LOADING; `die` takes the whole server down. Of several version folders the newest counts:
 * it comes in beside the one that serves, which goes when the newer one is READY and stays when that one fails.
 */
export class FakeTriton {
  readonly repository: string;
  readonly calls: string[] = [];
  private readonly models = new Map<string, FakeModel>();
  /** Newer versions that are coming in, or did not make it. */
  private readonly newer = new Map<string, FakeModel>();
  loadMs = 0;
  unloadMs = 0;
  down = false;
  /** A load that ends the server brings up a new one at once, as a supervisor would. */
  restartsByItself = false;
  /** The next loads are answered with these. */
  readonly failNext: TritonFault[] = [];
  loadingAtOnce = 0;
  mostLoadingAtOnce = 0;

  constructor(repository: string) {
    this.repository = repository;
  }

  /** A new process on the same repository: nothing is loaded. */
  restart(): void {
    this.models.clear();
    this.newer.clear();
    this.down = false;
  }

  kill(): void {
    this.models.clear();
    this.down = true;
  }

  /** Ends a load that hangs. */
  finish(name: string): void {
    this.models.set(name, { version: 1, state: 'READY', reason: '', bytes: 'hang' });
  }

  /** What an inference would be served from; undefined when the model is not ready. */
  served(name: string): string | undefined {
    const model = this.models.get(name);
    return model?.state === 'READY' ? model.bytes : undefined;
  }

  ready(): string[] {
    return [...this.models].filter(([, { state }]) => state === 'READY').map(([name]) => name);
  }

  control(): SyncTriton {
    const answer = async <T>(call: string, work: () => Promise<T>): Promise<T> => {
      this.check(call);
      const value = await work();
      this.check(call);
      return value;
    };
    return {
      ready: () => answer('ready', async () => true),
      serverMetadata: () =>
        answer('metadata', async () => ({ name: 'triton', version: '2.51.0', extensions: ['model_repository'] })),
      index: () => answer('index', () => this.index()),
      load: (name, options) => {
        this.calls.push(`load ${name}`);
        const fault = this.failNext.shift();
        if (fault) return Promise.reject(fault);
        return Promise.race([answer(`load ${name}`, () => this.load(name)), cancelled(name, options?.signal)]);
      },
      unload: (name) => {
        this.calls.push(`unload ${name}`);
        return answer(`unload ${name}`, () => this.unload(name));
      },
      modelMetadata: (name) =>
        answer('modelMetadata', async () => ({
          name,
          versions: ['1'],
          platform: 'onnxruntime_onnx',
          inputs: [{ name: 'x', datatype: 'FP32' as const, shape: [-1, 4] }],
          outputs: [{ name: 'y', datatype: 'FP32' as const, shape: [-1, 4] }],
        })),
      modelConfig: () => answer('modelConfig', async () => ({ max_batch_size: 8, input: [{ name: 'x' }] })),
      close: () => undefined,
    };
  }

  private check(call: string): void {
    if (this.down) throw new TritonFault('connection', call, 'No connection established');
  }

  private async index(): Promise<IndexEntry[]> {
    const folders = (await readdir(this.repository, { withFileTypes: true })).filter((entry) => entry.isDirectory());
    return folders.flatMap(({ name }) => {
      const known = [this.models.get(name), this.newer.get(name)].filter((model) => model !== undefined);
      if (known.length === 0) return [{ name, version: '', state: '' as const, reason: '' }];
      return known.map(({ version, state, reason }) => ({ name, version: String(version), state, reason }));
    });
  }

  private async load(name: string): Promise<void> {
    const folder = join(this.repository, name);
    const version = await this.poll(name, folder);
    const before = this.models.get(name);
    if (before?.state === 'READY' && before.version === version) return;
    const place = before?.state === 'READY' ? this.newer : this.models;
    place.set(name, { version, state: 'LOADING', reason: '' });
    this.loadingAtOnce += 1;
    this.mostLoadingAtOnce = Math.max(this.mostLoadingAtOnce, this.loadingAtOnce);
    try {
      await this.finishLoad(name, join(folder, String(version)), place);
    } finally {
      this.loadingAtOnce -= 1;
    }
  }

  /** The newest version folder of a model whose configuration can be read. */
  private async poll(name: string, folder: string): Promise<number> {
    try {
      parseModelConfig(await readFile(join(folder, 'config.pbtxt'), 'utf8'));
      const versions = (await readdir(folder)).filter((entry) => /^[1-9]\d*$/.test(entry)).map(Number);
      if (versions.length > 0) return Math.max(...versions);
    } catch {
      // said below
    }
    throw new TritonFault('load', `load ${name}`, `failed to load '${name}', failed to poll from model repository`);
  }

  private async finishLoad(name: string, folder: string, place: Map<string, FakeModel>): Promise<void> {
    const { version } = place.get(name)!;
    await new Promise((resolve) => setTimeout(resolve, this.loadMs));
    const bytes = await readFile(join(folder, 'model.onnx'), 'utf8').catch(() => 'corrupt: no model file');
    if (bytes.startsWith('hang')) return new Promise(() => undefined);
    if (bytes.startsWith('die')) {
      this.kill();
      if (this.restartsByItself) setTimeout(() => this.restart(), 20);
    }
    this.check(`load ${name}`);
    if (bytes.startsWith('corrupt')) {
      const reason = `Internal: onnxruntime: ${bytes}`;
      place.set(name, { version, state: 'UNAVAILABLE', reason });
      const text = `load failed for model '${name}': version ${version} is at UNAVAILABLE state: ${reason};\n`;
      throw new TritonFault('load', `load ${name}`, text);
    }
    this.newer.delete(name);
    this.models.set(name, { version, state: 'READY', reason: '', bytes });
  }

  private async unload(name: string): Promise<void> {
    const model = this.models.get(name);
    if (model?.state !== 'READY') return;
    this.models.set(name, { ...model, state: 'UNLOADING' });
    setTimeout(() => {
      if (this.models.get(name)?.state === 'UNLOADING')
        this.models.set(name, { ...model, state: 'UNAVAILABLE', reason: 'unloaded' });
    }, this.unloadMs);
  }
}
