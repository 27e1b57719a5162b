import { type IndexEntry, TritonFault } from '@perch/triton/control';
import { indexByName, type SyncTriton, type TritonFacts } from './sync.observe.ts';
import type { Indexed } from './sync-world.ts';

export interface TritonSourceParts {
  /** Opens a control connection; asked again after a loss, because a channel that failed waits longer and longer. */
  open(): SyncTriton;
  /** GPUs that Triton has; throws while that cannot be known. */
  gpus(): Promise<number>;
  now(): number;
}

const refreshFactsMs = 30_000;
const gpuPatienceMs = 10_000;
const missesBeforeDown = 3;

/** One Triton as the agent sees it: its index at each look, and the facts that change only when it is restarted. */
export class TritonSource {
  private readonly parts: TritonSourceParts;
  private current: SyncTriton | undefined;
  private known: TritonFacts = { live: false, ready: false, name: '', version: '', gpus: 0 };
  private factsAt: number | undefined;
  private firstGpuTryAt: number | undefined;
  private misses = 0;
  private fault = 'the model server has not answered yet';

  constructor(parts: TritonSourceParts) {
    this.parts = parts;
  }

  get control(): SyncTriton {
    this.current ??= this.parts.open();
    return this.current;
  }

  get facts(): TritonFacts {
    return this.known;
  }

  /** Why it does not answer, in words. */
  get downReason(): string {
    return this.fault;
  }

  /**
   * Triton's index; undefined when Triton is gone. One slow answer is not a death: then this throws, and what was seen
   * before still holds.
   */
  async look(): Promise<Map<string, Indexed> | undefined> {
    try {
      const index = await this.readIndex();
      this.misses = 0;
      return index;
    } catch (error) {
      this.misses += 1;
      const lost = error instanceof TritonFault && (error.kind === 'connection' || error.kind === 'stopping');
      if (!lost && this.misses < missesBeforeDown) throw error;
      this.fault = `the model server does not answer: ${error instanceof TritonFault ? error.text : 'unknown fault'}`;
      this.known = { ...this.known, live: false, ready: false };
      this.factsAt = undefined;
      this.close();
      return undefined;
    }
  }

  close(): void {
    this.current?.close();
    this.current = undefined;
  }

  private async readIndex(): Promise<Map<string, Indexed> | undefined> {
    const [entries, ready] = await Promise.all([this.control.index(), this.control.ready()]);
    await this.refreshFacts();
    this.known = { ...this.known, live: true, ready };
    return indexByName(entries as IndexEntry[]);
  }

  private async refreshFacts(): Promise<void> {
    const now = this.parts.now();
    if (this.factsAt !== undefined && now - this.factsAt < refreshFactsMs) return;
    const { name, version } = await this.control.serverMetadata();
    const gpus = await this.readGpus(now);
    this.known = { ...this.known, name, version, gpus };
    this.factsAt = now;
  }

  /** Configurations depend on it, so it is waited for; but not for ever, when the metrics port is closed. */
  private async readGpus(now: number): Promise<number> {
    this.firstGpuTryAt ??= now;
    try {
      return await this.parts.gpus();
    } catch (error) {
      if (now - this.firstGpuTryAt < gpuPatienceMs)
        throw new TritonFault('not_ready', 'GPU count of the model server', 'its metrics port does not answer', error);
      return this.known.gpus;
    }
  }
}
