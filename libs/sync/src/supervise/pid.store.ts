import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { bootId, startTimeOf } from './process.source.ts';

const written = z.object({
  pid: z.number().int().positive(),
  startTime: z.number(),
  bootId: z.string(),
  /** Digest of the command it was started with. */
  command: z.string(),
});
export type Written = z.infer<typeof written>;

/**
 * Which process is ours, on disk. Written without a pause after the start: an agent that dies in between would leave a
 * server behind that nobody knows.
 */
export class PidStore {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  write(pid: number, command: string): void {
    const startTime = startTimeOf(pid);
    if (startTime === undefined) return; // ended already, or a system without /proc: nothing to find again
    const text: Written = { pid, startTime, bootId: bootId(), command };
    writeFileSync(this.path, JSON.stringify(text), { mode: 0o600 });
  }

  /** The process written down, if it still lives; another one with its pid is not taken for it. */
  read(): Written | undefined {
    try {
      const found = written.parse(JSON.parse(readFileSync(this.path, 'utf8')));
      return found.bootId === bootId() && startTimeOf(found.pid) === found.startTime ? found : undefined;
    } catch {
      return undefined;
    }
  }

  clear(): void {
    rmSync(this.path, { force: true });
  }
}
