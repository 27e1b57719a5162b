import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type IndexEntry, type IndexState, parseModelConfig, TritonFault } from '@perch/triton/control';
import type { SyncTriton } from './sync.observe.ts';

/** Rejects when the caller cancels; the load itself goes on. */
const cancelled = (name: string, signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(new TritonFault('cancelled', `load ${name}`, 'Cancelled')));
  });

interface FakeModel {
  state: IndexState;
  reason: string;
  /** Text of the model file when it was loaded: what would be served. */
  bytes?: string;
}

/**
 * A model server in memory that keeps Triton's rules for a repository folder: explicit loads, one at a time a model,
 * an index of the folders on disk, reasons that stay until the process ends. A model file that begins with `corrupt`
 * fails to load; `hang` stays LOADING; `die` takes the whole server down.
 */
export class FakeTriton {
  readonly repository: string;
  readonly calls: string[] = [];
  private readonly models = new Map<string, FakeModel>();
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
    this.down = false;
  }

  kill(): void {
    this.models.clear();
    this.down = true;
  }

  /** Ends a load that hangs. */
  finish(name: string): void {
    this.models.set(name, { state: 'READY', reason: '', bytes: 'hang' });
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
    return folders.map(({ name }) => {
      const model = this.models.get(name);
      return model
        ? { name, version: '1', state: model.state, reason: model.reason }
        : { name, version: '', state: '', reason: '' };
    });
  }

  private async load(name: string): Promise<void> {
    const folder = join(this.repository, name);
    if (this.models.get(name)?.state === 'READY') return;
    try {
      parseModelConfig(await readFile(join(folder, 'config.pbtxt'), 'utf8'));
      await stat(join(folder, '1'));
    } catch {
      throw new TritonFault('load', `load ${name}`, `failed to load '${name}', failed to poll from model repository`);
    }
    this.models.set(name, { state: 'LOADING', reason: '' });
    this.loadingAtOnce += 1;
    this.mostLoadingAtOnce = Math.max(this.mostLoadingAtOnce, this.loadingAtOnce);
    try {
      await this.finishLoad(name, folder);
    } finally {
      this.loadingAtOnce -= 1;
    }
  }

  private async finishLoad(name: string, folder: string): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.loadMs));
    const bytes = await readFile(join(folder, '1', 'model.onnx'), 'utf8').catch(() => 'corrupt: no model file');
    if (bytes.startsWith('hang')) return new Promise(() => undefined);
    if (bytes.startsWith('die')) {
      this.kill();
      if (this.restartsByItself) setTimeout(() => this.restart(), 20);
    }
    this.check(`load ${name}`);
    if (bytes.startsWith('corrupt')) {
      const reason = `Internal: onnxruntime: ${bytes}`;
      this.models.set(name, { state: 'UNAVAILABLE', reason });
      const text = `load failed for model '${name}': version 1 is at UNAVAILABLE state: ${reason};\n`;
      throw new TritonFault('load', `load ${name}`, text);
    }
    this.models.set(name, { state: 'READY', reason: '', bytes });
  }

  private async unload(name: string): Promise<void> {
    const model = this.models.get(name);
    if (model?.state !== 'READY') return;
    this.models.set(name, { ...model, state: 'UNLOADING' });
    setTimeout(() => {
      if (this.models.get(name)?.state === 'UNLOADING')
        this.models.set(name, { state: 'UNAVAILABLE', reason: 'unloaded' });
    }, this.unloadMs);
  }
}
