import type { ServerUsage } from '@perch/contracts';
import type { GpuMemory } from './gpu.source.ts';
import type { UsageReader } from './load-meter.ts';
import { treeBytes } from './supervise/process.source.ts';

export interface UsageParts {
  /** The server's process; undefined: not known, or none. */
  pid(): number | undefined;
  gpus(): Promise<GpuMemory[]>;
  now(): number;
}

const stepBytes = 64 * 1024 ** 2;
const goodForMs = 5_000;
/** Triton looks at its GPUs every two seconds, unless it is told otherwise. */
const gpuLagMs = 2_500;

/** `told` while `bytes` stays near it; else `bytes` in whole steps. Breathing at the edge of a step is no news. */
export function steppedBytes(bytes: number, told: number | undefined): number {
  if (told !== undefined && bytes >= told - stepBytes / 2 && bytes < told + 1.5 * stepBytes) return told;
  return Math.floor(bytes / stepBytes) * stepBytes;
}

/** Memory of the model server: RAM of its process tree, GPU memory from its metrics. */
export class UsageSource implements UsageReader {
  private readonly parts: UsageParts;
  private gpuCount = 0;
  private told: ServerUsage | undefined;
  private toldAt = Number.NEGATIVE_INFINITY;

  constructor(parts: UsageParts) {
    this.parts = parts;
  }

  lagMs(): number {
    return this.gpuCount > 0 ? gpuLagMs : 0;
  }

  /** Undefined while its process is not known. */
  async read(exact: boolean): Promise<ServerUsage | undefined> {
    const pid = this.parts.pid();
    const ramBytes = pid === undefined ? undefined : treeBytes(pid, exact);
    if (ramBytes === undefined) return undefined;
    const gpus = await this.parts.gpus().catch(() => []);
    this.gpuCount = gpus.length;
    return { ramBytes, gpuBytes: Object.fromEntries(gpus.map(({ uuid, usedBytes }) => [uuid, usedBytes])) };
  }

  /** For the report: looked at every five seconds, in steps of 64 MiB. */
  async report(): Promise<ServerUsage | undefined> {
    const now = this.parts.now();
    if (now - this.toldAt < goodForMs) return this.told;
    this.toldAt = now;
    const usage = await this.read(false);
    this.told = usage && {
      ramBytes: steppedBytes(usage.ramBytes, this.told?.ramBytes),
      gpuBytes: Object.fromEntries(
        Object.entries(usage.gpuBytes).map(([uuid, bytes]) => [uuid, steppedBytes(bytes, this.told?.gpuBytes[uuid])]),
      ),
    };
    return this.told;
  }
}
