import { availableParallelism } from 'node:os';
import { type BoundModule, bundlePath, type Isolation, type Signature } from '@perch/contracts';
import type { AnyModule, FileSource } from '../contract.ts';
import { type LoadedProcessing, loadModule } from '../loaded-module.ts';
import { importBundle } from './bundle.ts';
import { carryError, moduleError } from './carried-error.ts';
import type { CellListener, CellPort } from './cell.port.ts';
import { CellPool, type PoolParts, type PoolSettings } from './cell-pool.ts';
import { ChildPort, missingFences } from './child.port.ts';
import { isolatedProcessing } from './isolated-processing.ts';
import { PoolStats } from './pool-stats.ts';
import { Spare } from './spare.ts';
import { ThreadPort } from './thread.port.ts';

export interface IsolationSettings extends PoolSettings {
  /** Old generation of a cell's heap. */
  heapMb: number;
  /** Of one process, everything counted. */
  processMb: number;
}

export const usualIsolation: IsolationSettings = {
  mostCells: Math.max(1, Math.min(4, availableParallelism())),
  heapMb: 256,
  offHeapMb: 512,
  processMb: 1_024,
  loadLimitMs: 30_000,
  unloadLimitMs: 10_000,
  stuckLimitMs: 1_000,
  silentLimitMs: 5_000,
};

export interface ModuleToLoad {
  module: BoundModule;
  isolation: Isolation;
  options: unknown;
  /** Files of the module, the bundle among them, and of the version. */
  files: FileSource;
  signature: Signature;
  maxBatchSize: number;
}

const sweepEveryMs = 20;
const mostCounted = 1_000;

/** Runs registered modules where each is to run. One for a program; `close` it at the end. */
export class ModuleHost {
  private readonly settings: IsolationSettings;
  private readonly tell: PoolParts['tell'];
  private readonly pools = new Map<string, CellPool>();
  private readonly inline = new Map<string, Promise<AnyModule>>();
  private readonly spares = new Map<PoolParts['kind'], Spare>();
  /** Of modules that run or ran here, by where and which. */
  readonly counts = new Map<string, PoolStats>();
  private nextBinding = 1;
  private sweeping: NodeJS.Timeout | undefined;

  constructor(tell: PoolParts['tell'] = () => undefined, settings: Partial<IsolationSettings> = {}) {
    this.tell = tell;
    this.settings = { ...usualIsolation, ...settings };
  }

  /** Rejects with `module` (it threw, ended or took too long while loading), or with the AppError that its `load` threw. */
  async load(wanted: ModuleToLoad): Promise<LoadedProcessing> {
    const bundle = await wanted.files.read(bundlePath);
    return wanted.isolation === 'inline' ? this.loadInline(wanted, bundle) : this.loadInCells(wanted, bundle);
  }

  /** Every pool that runs now. */
  get running(): readonly CellPool[] {
    return [...this.pools.values()];
  }

  close(): void {
    clearInterval(this.sweeping);
    for (const pool of this.pools.values()) pool.endAll();
    this.pools.clear();
    for (const spare of this.spares.values()) spare.close();
    this.spares.clear();
  }

  private async loadInline({ module, options, files, signature, maxBatchSize }: ModuleToLoad, bundle: Buffer) {
    const label = labelOf(module);
    try {
      const known = this.inline.get(module.digest) ?? importBundle(bundle, label);
      this.inline.set(module.digest, known);
      return namingErrors(label, await loadModule(await known, options, { files, signature, maxBatchSize }));
    } catch (error) {
      this.inline.delete(module.digest);
      throw moduleError(label, 'load', carryError(error));
    }
  }

  private async loadInCells(
    { module, isolation, options, files, signature, maxBatchSize }: ModuleToLoad,
    bundle: Buffer,
  ): Promise<LoadedProcessing> {
    const key = `${isolation} ${module.digest}`;
    const pool = this.pools.get(key) ?? this.makePool(module, isolation as PoolParts['kind'], bundle);
    this.pools.set(key, pool);
    this.sweeping ??= setInterval(() => this.sweep(), sweepEveryMs).unref();
    const id = this.nextBinding++;
    try {
      await pool.bind({ id, options, signature, maxBatchSize, files });
    } catch (error) {
      if (pool.isIdle) this.pools.delete(key);
      throw error;
    }
    return isolatedProcessing(pool, id, module.facts, async () => {
      await pool.unbind(id);
      if (pool.isIdle && this.pools.get(key) === pool) this.pools.delete(key);
    });
  }

  private makePool(module: BoundModule, kind: PoolParts['kind'], bundle: Buffer): CellPool {
    const { settings, tell } = this;
    const limits = { heapMb: settings.heapMb, memoryMb: settings.processMb };
    const open = (listener: CellListener): CellPort =>
      kind === 'process' ? new ChildPort(limits, listener) : new ThreadPort(limits, listener);
    const missing = kind === 'process' && !this.spares.has(kind) ? missingFences() : [];
    if (missing.length > 0) tell('warn', 'processes of modules cannot be fenced in whole here', { missing });
    const spare = this.spares.get(kind) ?? new Spare(open);
    this.spares.set(kind, spare);
    const openPort = (listener: CellListener) => spare.take(listener);
    return new CellPool({
      label: labelOf(module),
      kind,
      bundle,
      stats: this.statsOf(labelOf(module), kind),
      settings,
      openPort,
      tell,
    });
  }

  /** Counts outlive the pool, so that they never go back; those of the modules used longest ago are forgotten. */
  private statsOf(label: string, kind: PoolParts['kind']): PoolStats {
    const key = `${kind} ${label}`;
    const stats = this.counts.get(key) ?? new PoolStats(label, kind);
    this.counts.delete(key);
    this.counts.set(key, stats);
    if (this.counts.size > mostCounted) this.counts.delete(this.counts.keys().next().value!);
    return stats;
  }

  private sweep(): void {
    const nowMs = performance.now();
    for (const pool of this.pools.values()) pool.sweep(nowMs);
  }
}

const labelOf = ({ name, number }: BoundModule): string => `${name}@${number}`;

/** A module in this process: what it throws is said like that of any other. */
function namingErrors(label: string, loaded: LoadedProcessing): LoadedProcessing {
  const named = (hook: string, error: unknown) => {
    const carried = carryError(error);
    return carried.code ? error : moduleError(label, hook, carried);
  };
  const guard = <T>(hook: string, run: () => T): T => {
    try {
      const result = run();
      if (!(result instanceof Promise)) return result;
      return result.catch((error) => {
        throw named(hook, error);
      }) as T;
    } catch (error) {
      throw named(hook, error);
    }
  };
  return {
    declares: loaded.declares,
    preprocess: (...given) => guard('preprocess', () => loaded.preprocess(...given)),
    ...(loaded.process ? { process: (...given) => guard('process', () => loaded.process!(...given)) } : {}),
    postprocess: (...given) => guard('postprocess', () => loaded.postprocess(...given)),
    unload: () => loaded.unload(),
  };
}
