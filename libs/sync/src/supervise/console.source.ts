import { open, stat, truncate } from 'node:fs/promises';

const mostLineChars = 500;
const keptLines = 200;
const readBytes = 256 * 1024;
/** A console file longer than this is emptied once all of it was read. */
const mostFileBytes = 4 * 1024 ** 2;

/**
 * The console of a server that writes into a file: the file outlives the agent, a pipe would not, and a server that
 * writes to a broken pipe ends. Keeps the last lines; hands each new line on.
 */
export class ConsoleSource {
  readonly path: string;
  private readonly onLine: (line: string) => void;
  private readonly lines: string[] = [];
  private offset = 0;
  private rest = '';
  private reading: Promise<void> | undefined;

  constructor(path: string, onLine: (line: string) => void = () => undefined) {
    this.path = path;
    this.onLine = onLine;
  }

  /** The newest lines, oldest first. */
  tail(count: number): string[] {
    return this.lines.slice(-count);
  }

  /** Goes on behind what is in the file now, of which only the tail is kept. */
  async open(): Promise<void> {
    const { size } = await stat(this.path).catch(() => ({ size: 0 }));
    this.offset = Math.max(0, size - readBytes);
    await this.read(() => undefined);
  }

  /** Reads what was written since. */
  async drain(): Promise<void> {
    this.reading ??= this.read(this.onLine).finally(() => {
      this.reading = undefined;
    });
    await this.reading;
  }

  private async read(onLine: (line: string) => void): Promise<void> {
    const file = await open(this.path, 'r').catch(() => undefined);
    if (!file) return;
    try {
      const buffer = Buffer.allocUnsafe(readBytes);
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, readBytes, this.offset);
        if (bytesRead === 0) break;
        this.offset += bytesRead;
        this.take(buffer.toString('utf8', 0, bytesRead), onLine);
      }
      // Its writer appends, so that it goes on at the new end.
      if (this.offset > mostFileBytes) {
        await truncate(this.path);
        this.offset = 0;
      }
    } finally {
      await file.close();
    }
  }

  private take(text: string, onLine: (line: string) => void): void {
    const lines = (this.rest + text).split('\n');
    this.rest = (lines.pop() ?? '').slice(0, 64 * 1024);
    for (const line of lines) {
      const shown = line.trimEnd().slice(0, mostLineChars);
      if (shown === '') continue;
      this.lines.push(shown);
      onLine(shown);
    }
    this.lines.splice(0, Math.max(0, this.lines.length - keptLines));
  }
}
