import { AppError, type RouteTarget } from '@perch/contracts';
import { withTimeout } from '@perch/platform';
import { type FileSource, type LoadedProcessing, loadProcessing } from '@perch/processing';

/** Where the bytes of a version's small files are, by hash. */
export interface FileReader {
  /** Verified bytes. Throws `unavailable` while they are not on this machine. */
  read(sha256: string, size: number): Promise<Buffer>;
}

const loadLimitMs = 30_000;

/** What processing is made of. */
const identityOf = ({ processing, inputs, outputs, maxBatchSize, files }: RouteTarget): string =>
  JSON.stringify([processing, inputs, outputs, maxBatchSize, files]);

function fileSource(target: RouteTarget, reader: FileReader): FileSource {
  return {
    list: () => target.files.map((file) => file.path),
    async read(path) {
      const file = target.files.find((one) => one.path === path);
      if (!file) throw new AppError('not_found', `version ${target.version} has no file ${path}`);
      return reader.read(file.sha256, file.size);
    },
  };
}

interface Entry {
  identity: string;
  loaded: LoadedProcessing | undefined;
}

/** Processing of every deployment in use, loaded once each and before the first request needs it. */
export class ProcessingStore {
  private readonly reader: FileReader;
  private readonly entries = new Map<string, Entry>();
  private readonly known = new WeakMap<RouteTarget, Entry>();

  constructor(reader: FileReader) {
    this.reader = reader;
  }

  find(target: RouteTarget): LoadedProcessing | undefined {
    return this.entryOf(target).loaded;
  }

  /** Loads what is not loaded yet. Throws what the module threw. */
  async prepare(target: RouteTarget): Promise<void> {
    const entry = this.entryOf(target);
    if (entry.loaded) return;
    const { inputs, outputs, maxBatchSize, processing } = target;
    const files = fileSource(target, this.reader);
    const { builtin = 'passthrough', options } = processing;
    const setup = { builtin, options, files, signature: { inputs, outputs }, maxBatchSize };
    entry.loaded = await withTimeout(loadProcessing(setup), loadLimitMs, `loading processing ${builtin}`);
  }

  /** Unloads what none of these needs. */
  async keepOnly(targets: Iterable<RouteTarget>): Promise<void> {
    const wanted = new Set<Entry>();
    for (const target of targets) wanted.add(this.entryOf(target));
    for (const entry of this.entries.values()) {
      if (wanted.has(entry)) continue;
      this.entries.delete(entry.identity);
      const { loaded } = entry;
      entry.loaded = undefined;
      await loaded?.unload();
    }
  }

  /** Targets that agree in all that processing is made of have the same entry. */
  private entryOf(target: RouteTarget): Entry {
    const known = this.known.get(target);
    if (known && this.entries.get(known.identity) === known) return known;
    const identity = identityOf(target);
    let entry = this.entries.get(identity);
    if (!entry) {
      entry = { identity, loaded: undefined };
      this.entries.set(identity, entry);
    }
    this.known.set(target, entry);
    return entry;
  }
}
