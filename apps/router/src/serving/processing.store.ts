import { AppError, type RouteTarget } from '@perch/contracts';
import { backoffMs, type Logger, pause, silentLogger, withTimeout } from '@perch/platform';
import type { FileSource } from '@perch/processing';
import { type IsolationSettings, type LoadedProcessing, loadProcessing, ModuleHost } from '@perch/processing/host';

/** Where the bytes of a version's small files are, by hash. */
export interface FileReader {
  /** Verified bytes. Throws `unavailable` while they are not on this machine. */
  read(sha256: string, size: number): Promise<Buffer>;
}

const loadLimitMs = 30_000;
/** Until a module's worker or process is there. */
const startLimitMs = 65_000;
/** A module that failed to load is not tried again at once: each try may cost a worker. */
const failedForMs = 5_000;
const longestFailedMs = 60_000;
/** Retired processing is kept until no request runs on it, and this much longer: some are between two looks. */
const lingerMs = 250;
const lookEveryMs = 50;
/** Longer than any request may take. */
const busyLimitMs = 3_700_000;
const unloadLimitMs = 15_000;

/** What processing is made of. */
const identityOf = ({ processing, inputs, outputs, maxBatchSize, files }: RouteTarget): string =>
  JSON.stringify([processing, inputs, outputs, maxBatchSize, files]);

/** Files of the module and of the version; where both have one, the module's. */
function fileSource({ version, files, processing }: RouteTarget, reader: FileReader): FileSource {
  const known = new Map(files.map((file) => [file.path, file]));
  for (const file of processing.module?.files ?? []) known.set(file.path, file);
  return {
    list: () => [...known.keys()],
    async read(path) {
      const file = known.get(path);
      if (file) return reader.read(file.sha256, file.size);
      const { module } = processing;
      const owners = module ? `version ${version} and module ${module.name}@${module.number} have` : `version ${version} has`; // biome-ignore format: one row reads better
      throw new AppError('not_found', `${owners} no file ${path}`);
    },
  };
}

interface Entry {
  identity: string;
  loaded: LoadedProcessing | undefined;
  loading: Promise<void> | undefined;
  failure: { error: unknown; untilMs: number; times: number } | undefined;
}

export interface ProcessingUse {
  /** A request runs on it, or may be sent to it. */
  inUse(processing: LoadedProcessing): boolean;
}

/** Processing of every deployment in use, loaded once each and before the first request needs it. */
export class ProcessingStore {
  readonly host: ModuleHost;
  private readonly reader: FileReader;
  private readonly use: ProcessingUse;
  private readonly logger: Logger;
  private readonly entries = new Map<string, Entry>();
  private readonly known = new WeakMap<RouteTarget, Entry>();
  private readonly retiring = new Set<Promise<void>>();
  private readonly loadLimitMs: number;
  private closing = false;

  constructor(
    reader: FileReader,
    use: ProcessingUse = { inUse: () => false },
    logger: Logger = silentLogger,
    modules: Partial<IsolationSettings> = {},
  ) {
    this.reader = reader;
    this.use = use;
    this.logger = logger;
    this.host = new ModuleHost((level, what, fields) => logger[level](what, fields), modules);
    this.loadLimitMs = Math.max(loadLimitMs, (modules.loadLimitMs ?? 0) + startLimitMs);
  }

  find(target: RouteTarget): LoadedProcessing | undefined {
    return this.entryOf(target).loaded;
  }

  isLoading(target: RouteTarget): boolean {
    return this.entryOf(target).loading !== undefined;
  }

  /** Loads what is not loaded yet. Throws what the module threw. */
  prepare(target: RouteTarget): Promise<void> {
    const entry = this.entryOf(target);
    if (entry.loaded) return Promise.resolve();
    if (entry.failure && performance.now() < entry.failure.untilMs) return Promise.reject(entry.failure.error);
    entry.loading ??= this.load(target, entry).finally(() => {
      entry.loading = undefined;
    });
    return entry.loading;
  }

  /** Unloads what none of these needs, when nothing runs on it any more; does not wait for that. */
  keepOnly(targets: Iterable<RouteTarget>): void {
    const wanted = new Set<Entry>();
    for (const target of targets) wanted.add(this.entryOf(target));
    for (const entry of this.entries.values()) {
      if (wanted.has(entry)) continue;
      this.entries.delete(entry.identity);
      const { loaded } = entry;
      entry.loaded = undefined;
      if (!loaded) continue;
      const retired = this.retire(loaded, entry).finally(() => this.retiring.delete(retired));
      this.retiring.add(retired);
    }
  }

  /** Unloads everything, whatever still runs. */
  async close(): Promise<void> {
    this.closing = true;
    this.keepOnly([]);
    await Promise.all(this.retiring);
    this.host.close();
  }

  private async load(target: RouteTarget, entry: Entry): Promise<void> {
    const { inputs, outputs, maxBatchSize, processing } = target;
    const { builtin = 'passthrough', module, options, isolation = 'worker' } = processing;
    const files = fileSource(target, this.reader);
    const setup = { options, files, signature: { inputs, outputs }, maxBatchSize };
    try {
      const loading = module ? this.host.load({ ...setup, module, isolation }) : loadProcessing({ ...setup, builtin });
      const name = module ? `module ${module.name}@${module.number}` : `processing ${builtin}`;
      const loaded = await withTimeout(loading, this.loadLimitMs, `loading ${name}`);
      entry.failure = undefined;
      // nobody wants it any more
      if (this.entries.get(entry.identity) !== entry) await loaded.unload();
      else entry.loaded = loaded;
    } catch (error) {
      const lasting = error instanceof AppError && error.code === 'module';
      const times = (entry.failure?.times ?? 0) + 1;
      const untilMs = performance.now() + backoffMs(times, failedForMs, longestFailedMs);
      entry.failure = lasting ? { error, untilMs, times } : undefined;
      throw error;
    }
  }

  private async retire(loaded: LoadedProcessing, { identity }: Entry): Promise<void> {
    const untilMs = performance.now() + busyLimitMs;
    let idleSince: number | undefined;
    while (!this.closing && performance.now() < untilMs) {
      if (this.use.inUse(loaded)) idleSince = undefined;
      else idleSince ??= performance.now();
      if (idleSince !== undefined && performance.now() - idleSince >= lingerMs) break;
      await pause(lookEveryMs);
    }
    try {
      await withTimeout(loaded.unload(), unloadLimitMs, 'unloading processing');
    } catch (error) {
      this.logger.warn('processing not unloaded', { processing: identity.slice(0, 200), error });
    }
  }

  /** Targets that agree in all that processing is made of have the same entry. */
  private entryOf(target: RouteTarget): Entry {
    const known = this.known.get(target);
    if (known && this.entries.get(known.identity) === known) return known;
    const identity = identityOf(target);
    let entry = this.entries.get(identity);
    if (!entry) {
      entry = { identity, loaded: undefined, loading: undefined, failure: undefined };
      this.entries.set(identity, entry);
    }
    this.known.set(target, entry);
    return entry;
  }
}
