import { innerMessage } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { IndexEntry, ModelConfig } from '@perch/triton/control';
import { type LoadParameters, type RepositoryHost, ServingFault } from '@perch/triton/server';
import type { ModelVersion } from '../models/model-version.ts';
import type { FailureReason } from '../models/version-statistics.ts';
import type { OpenSession } from '../session/onnx-session.ts';
import { ModelEntry, retire, type VersionEntry } from './model-entry.ts';
import { configIdentity, type ModelFolder, modelNames, newestOf, readModelFolder } from './model-folder.source.ts';
import { openVersion } from './open-version.ts';
import { byNumber, chooseVersions } from './version.plan.ts';

export interface RepositoryOptions {
  folder: string;
  threads: number;
  openSession: OpenSession;
  logger: Logger;
  onFailure: (model: string, version: string, reason: FailureReason) => void;
  /** Loads of different models at the same time; default 4. */
  parallelLoads?: number;
}

interface Opened {
  version: string;
  entry: VersionEntry;
  outcome: { runtime: ModelVersion; newestMs: number; identity: string } | { reason: string };
}

/** The models of one folder, in Triton's explicit mode: nothing happens but by a load or an unload. */
export class RepositoryService implements RepositoryHost {
  private readonly entries = new Map<string, ModelEntry>();
  private readonly retiring = new Set<Promise<void>>();
  private readonly options: RepositoryOptions;
  private loading = 0;
  private readonly queue: (() => void)[] = [];

  constructor(options: RepositoryOptions) {
    this.options = options;
  }

  /** A model that was loaded at least once. */
  find(name: string): ModelEntry | undefined {
    const entry = this.entries.get(name);
    return entry && entry.versions.size > 0 ? entry : undefined;
  }

  *ready(): Iterable<[name: string, version: string, runtime: ModelVersion]> {
    for (const [name, entry] of [...this.entries].sort(([a], [b]) => (a < b ? -1 : 1)))
      for (const [version, runtime] of entry.ready()) yield [name, version, runtime];
  }

  async index(readyOnly: boolean): Promise<IndexEntry[]> {
    const found: IndexEntry[] = [];
    for (const name of await modelNames(this.options.folder)) {
      const versions = [...(this.entries.get(name)?.versions ?? [])].sort(([a], [b]) => byNumber(a, b));
      if (versions.length === 0 && !readyOnly) found.push({ name, version: '', state: '', reason: '' });
      for (const [version, { state, reason }] of versions)
        if (!readyOnly || state === 'READY') found.push({ name, version, state, reason });
    }
    return found;
  }

  async load(name: string, parameters: LoadParameters): Promise<void> {
    const override = overrideOf(parameters);
    // In place before anything else, so that a second load of the same name waits for this one.
    const entry = this.entries.get(name) ?? new ModelEntry();
    this.entries.set(name, entry);
    try {
      await entry.inTurn(() => this.withSlot(() => this.loadNow(name, entry, override)));
    } finally {
      if (entry.isBlank) this.entries.delete(name);
    }
  }

  async unload(name: string, _parameters: LoadParameters): Promise<void> {
    const entry = this.entries.get(name);
    if (!entry) return;
    await entry.inTurn(async () => {
      entry.loadedNewestMs = undefined;
      for (const [version] of entry.ready()) this.retire(name, entry.version(version));
    });
  }

  /** Unloads everything and waits until what was accepted is finished. */
  async close(): Promise<void> {
    await Promise.all([...this.entries.keys()].map((name) => this.unload(name, {})));
    await Promise.all(this.retiring);
  }

  private retire(model: string, entry: VersionEntry): void {
    const done = retire(entry, (error) => this.options.logger.error('unload failed', { model, error }));
    this.retiring.add(done);
    void done.finally(() => this.retiring.delete(done));
  }

  private async withSlot<T>(work: () => Promise<T>): Promise<T> {
    if (this.loading >= (this.options.parallelLoads ?? 4))
      await new Promise<void>((resolve) => this.queue.push(resolve));
    else this.loading += 1;
    try {
      return await work();
    } finally {
      const next = this.queue.shift();
      if (next) next();
      else this.loading -= 1;
    }
  }

  private async loadNow(name: string, entry: ModelEntry, override: string | undefined): Promise<void> {
    const { logger, folder: repository } = this.options;
    let folder: ModelFolder;
    try {
      const unchanged = override === undefined && entry.loadedNewestMs !== undefined;
      if (unchanged && (await newestOf(repository, name)) === entry.loadedNewestMs) return;
      folder = await readModelFolder(repository, name, override);
    } catch (error) {
      // Triton keeps the why to its log; so does this engine, word for word.
      logger.error('model could not be read', { model: name, reason: innerMessage(error) });
      throw new ServingFault('internal', `failed to load '${name}', failed to poll from model repository`);
    }
    const chosen = chooseVersions([...folder.versions.keys()], folder.config.version_policy);
    if (chosen.length === 0)
      throw new ServingFault(
        'invalid_argument',
        `load failed for model '${name}': at least one version must be available under the version policy of model '${name}'\n`,
      );
    const startedMs = performance.now();
    const opened = await Promise.all(chosen.map((version) => this.open(name, version, folder, entry)));
    await this.settle(
      name,
      entry,
      opened.filter((one) => one !== undefined),
    );
    for (const [version] of entry.ready()) if (!chosen.includes(version)) this.retire(name, entry.version(version));
    entry.loadedNewestMs = folder.newestMs;
    logger.info('model loaded', {
      model: name,
      versions: chosen,
      durationMs: Math.round(performance.now() - startedMs),
    });
  }

  /** Opens one version beside what serves now; undefined when it is already as it should be. */
  private async open(
    name: string,
    version: string,
    folder: ModelFolder,
    model: ModelEntry,
  ): Promise<Opened | undefined> {
    const entry = model.version(version);
    const { folder: path, newestMs } = folder.versions.get(version)!;
    const identity = configIdentity(folder.config);
    const from = entry.openedFrom;
    if (entry.state === 'READY' && from?.newestMs === newestMs && from.identity === identity) return undefined;
    if (entry.state !== 'READY') Object.assign(entry, { state: 'LOADING', reason: '' });
    const { openSession, threads, onFailure } = this.options;
    const config: ModelConfig = folder.config;
    const report = (reason: FailureReason) => onFailure(name, version, reason);
    try {
      const runtime = await openVersion({
        name,
        version,
        folder: path,
        config,
        openSession,
        threads,
        onFailure: report,
      });
      return { version, entry, outcome: { runtime, newestMs, identity } };
    } catch (error) {
      return { version, entry, outcome: { reason: innerMessage(error) } };
    }
  }

  /** All or nothing: one failed version drops the others of this load, and everything that served goes on serving. */
  private async settle(name: string, model: ModelEntry, opened: Opened[]): Promise<void> {
    const faults: string[] = [];
    for (const { version, outcome } of opened)
      if ('reason' in outcome) faults.push(`version ${version} is at UNAVAILABLE state: ${outcome.reason};`);
    for (const { entry, outcome } of opened) {
      if ('reason' in outcome) {
        if (entry.state !== 'READY') Object.assign(entry, { state: 'UNAVAILABLE', reason: outcome.reason });
      } else if (faults.length > 0) {
        await outcome.runtime.close();
        if (entry.state !== 'READY') Object.assign(entry, { state: 'UNAVAILABLE', reason: 'unloaded' });
      } else {
        const { runtime, newestMs, identity } = outcome;
        const before: VersionEntry = { ...entry };
        Object.assign(entry, { state: 'READY', reason: '', runtime, openedFrom: { newestMs, identity } });
        if (before.runtime) this.retire(name, before);
      }
    }
    if (faults.length === 0) return;
    this.options.logger.error('model failed to load', { model: name, faults });
    model.loadedNewestMs = undefined;
    throw new ServingFault('invalid_argument', `load failed for model '${name}': ${faults.join('')}\n`);
  }
}

/** The `config` of a load request. `file:` contents are not offered here. */
function overrideOf(parameters: LoadParameters): string | undefined {
  for (const [key, value] of Object.entries(parameters)) {
    if (key.startsWith('file:'))
      throw new ServingFault(
        'unsupported',
        "load parameter 'file:…' is not offered by this engine; put the file into the repository",
      );
    if (key !== 'config') throw new ServingFault('invalid_argument', `unrecognized load parameter '${key}'`);
    if (typeof value !== 'string')
      throw new ServingFault('invalid_argument', "load parameter 'config' wants a string of JSON");
  }
  const config = parameters['config'];
  return typeof config === 'string' ? config : undefined;
}
