import { AppError, type RouteTarget } from '@perch/contracts';
import { withTimeout } from '@perch/platform';
import { type FileSource, type LoadedProcessing, loadProcessing } from '@perch/processing';

/** Where the bytes of a version's small files are, by hash. */
export interface FileReader {
  /** Verified bytes. Throws `unavailable` while they are not on this machine. */
  read(sha256: string, size: number): Promise<Buffer>;
}

const loadLimitMs = 30_000;

/** What processing is made of: targets that agree in this share one. */
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

/** Processing of every deployment in use, loaded once each and before the first request needs it. */
export class ProcessingStore {
  private readonly reader: FileReader;
  private readonly loaded = new Map<string, LoadedProcessing>();
  private readonly identities = new WeakMap<RouteTarget, string>();

  constructor(reader: FileReader) {
    this.reader = reader;
  }

  find(target: RouteTarget): LoadedProcessing | undefined {
    return this.loaded.get(this.identity(target));
  }

  /** Loads what is not loaded yet. Throws what the module threw. */
  async prepare(target: RouteTarget): Promise<LoadedProcessing> {
    const known = this.find(target);
    if (known) return known;
    const { inputs, outputs, maxBatchSize, processing } = target;
    const files = fileSource(target, this.reader);
    const setup = { ...processing, files, signature: { inputs, outputs }, maxBatchSize };
    const loaded = await withTimeout(loadProcessing(setup), loadLimitMs, `loading processing ${processing.builtin}`);
    this.loaded.set(this.identity(target), loaded);
    return loaded;
  }

  /** Unloads what none of these needs. */
  async keepOnly(targets: Iterable<RouteTarget>): Promise<void> {
    const wanted = new Set<string>();
    for (const target of targets) wanted.add(this.identity(target));
    for (const [identity, loaded] of this.loaded) {
      if (wanted.has(identity)) continue;
      this.loaded.delete(identity);
      await loaded.unload();
    }
  }

  private identity(target: RouteTarget): string {
    let identity = this.identities.get(target);
    if (identity === undefined) {
      identity = identityOf(target);
      this.identities.set(target, identity);
    }
    return identity;
  }
}
