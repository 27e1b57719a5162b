import type { ServerUsage } from '@perch/contracts';
import { pause } from '@perch/platform';

/** Memory of the model server right now; undefined: not known. */
export interface UsageReader {
  /** `exact` may cost some milliseconds. */
  read(exact: boolean): Promise<ServerUsage | undefined>;
  /** How long figures lag behind, for GPUs; 0 without any. */
  lagMs(): number;
}

const grown = (before: ServerUsage, after: ServerUsage): ServerUsage => ({
  ramBytes: Math.max(0, after.ramBytes - before.ramBytes),
  gpuBytes: Object.fromEntries(
    Object.entries(after.gpuBytes).map(([uuid, bytes]) => [
      uuid,
      Math.max(0, bytes - (before.gpuBytes[uuid] ?? bytes)),
    ]),
  ),
});

/** What a server grows by while one model comes in alone: from before its load until after its first answer. */
export class LoadMeter {
  private readonly reader: UsageReader | undefined;
  private readonly begun = new Map<string, ServerUsage>();

  constructor(reader: UsageReader | undefined) {
    this.reader = reader;
  }

  /** Models between the two looks. */
  get measuring(): ReadonlySet<string> {
    return new Set(this.begun.keys());
  }

  /** `waits`: the figure was asked for, so that it may take the time until GPU figures have caught up. */
  async begin(name: string, waits: boolean, signal: AbortSignal): Promise<void> {
    this.begun.delete(name);
    const usage = await this.look(waits, signal);
    if (usage) this.begun.set(name, usage);
  }

  /** Undefined: not measured, or it was not alone. */
  async finish(name: string, waits: boolean, alone: boolean, signal: AbortSignal): Promise<ServerUsage | undefined> {
    const before = this.begun.get(name);
    if (!before || !alone) {
      this.begun.delete(name);
      return undefined;
    }
    const after = await this.look(waits, signal);
    this.begun.delete(name);
    return after && grown(before, after);
  }

  forget(name: string): void {
    this.begun.delete(name);
  }

  private async look(waits: boolean, signal: AbortSignal): Promise<ServerUsage | undefined> {
    const lagMs = this.reader?.lagMs() ?? 0;
    // Figures of GPUs that lag would be those of the load before.
    if (lagMs > 0 && !waits) return undefined;
    if (lagMs > 0) await pause(lagMs, signal);
    return this.reader?.read(true).catch(() => undefined);
  }
}
