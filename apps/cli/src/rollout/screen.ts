import type { WriteStream } from 'node:tty';

const other = '\u001b[?1049h\u001b[?25l\u001b[?7l'; // a screen of its own, no cursor, long lines are cut and not wrapped
const back = '\u001b[?7h\u001b[?25h\u001b[?1049l';

/**
 * Draws frames in place on a screen of its own, so that the lines above are as before when it ends. Whatever ends the
 * program gives the terminal back.
 */
export class Screen {
  private readonly give = () => void this.out.write(back);
  private readonly stop = () => {
    this.close();
    process.exit(130);
  };

  /** `onResize` is asked to draw anew. */
  constructor(
    private readonly out: WriteStream,
    private readonly onResize: () => void,
  ) {
    out.write(other);
    out.on('resize', onResize);
    process.once('exit', this.give);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, this.stop);
  }

  get width(): number {
    return this.out.columns ?? 80;
  }
  get height(): number {
    return this.out.rows ?? 24;
  }

  /**
   * One write a frame: no half of one is ever seen. Each row is cleared before it is written: after it, the cursor would
   * stand on its last column.
   */
  draw(lines: readonly string[]): void {
    const rows = Array.from({ length: Math.max(lines.length, this.height) }, (_, at) => lines[at] ?? '');
    this.out.write(
      `\u001b[H${rows
        .slice(0, this.height)
        .map((row) => `\u001b[K${row}`)
        .join('\r\n')}`,
    );
  }

  close(): void {
    this.out.off('resize', this.onResize);
    process.off('exit', this.give);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, this.stop);
    this.give();
  }
}
