export interface Part {
  from: number;
  /** First byte behind the part. */
  end: number;
}

const mostPieceBytes = 4 * 1024 ** 2;

/** Chunks of one part between the connection that brings them and the file that takes them. */
export class PartQueue {
  readonly range: Part;
  /** Offset in the blob of the next byte to arrive. */
  at: number;
  private readonly limitBytes: number;
  private readonly worthBytes: number;
  private queue: Uint8Array[] = [];
  private heldBytes = 0;
  private state: 'open' | 'ended' | 'failed' | 'abandoned' = 'open';
  private fault: unknown;
  private wakeReader: (() => void) | undefined;
  private wakeWriter: (() => void) | undefined;

  constructor(range: Part, limitBytes: number) {
    this.range = range;
    this.at = range.from;
    this.limitBytes = limitBytes;
    this.worthBytes = Math.min(mostPieceBytes, limitBytes);
  }

  /** False: full, wait for `hasRoom` before the next chunk. */
  push(chunk: Uint8Array): boolean {
    this.at += chunk.length;
    if (this.state !== 'open') return true;
    this.queue.push(chunk);
    this.heldBytes += chunk.length;
    if (this.heldBytes >= this.worthBytes) this.wakeReader?.();
    return this.heldBytes < this.limitBytes;
  }

  async hasRoom(): Promise<void> {
    while (this.state === 'open' && this.heldBytes >= this.limitBytes) await this.writerTurn();
  }

  /** Resolves when the reader has taken everything. */
  async drained(): Promise<void> {
    while (this.state !== 'abandoned' && this.heldBytes > 0) await this.writerTurn();
  }

  end(): void {
    if (this.state === 'open') this.state = 'ended';
    this.wakeReader?.();
  }

  fail(fault: unknown): void {
    if (this.state === 'open') {
      this.state = 'failed';
      this.fault = fault;
    }
    this.wakeReader?.();
  }

  /** Nobody reads any more. */
  abandon(): void {
    this.state = 'abandoned';
    this.queue = [];
    this.heldBytes = 0;
    this.wakeWriter?.();
  }

  /**
   * What has arrived since the last look, in pieces that are worth a write, until the part ends. Bytes before a fault are
   * given out first.
   */
  async *chunks(): AsyncGenerator<Uint8Array[]> {
    for (;;) {
      while (this.state === 'open' && this.heldBytes < this.worthBytes) {
        await new Promise<void>((resolve) => {
          this.wakeReader = resolve;
        });
      }
      if (this.queue.length > 0) {
        const taken = this.queue;
        this.queue = [];
        this.heldBytes = 0;
        this.wakeWriter?.();
        yield taken;
      } else if (this.state === 'failed') {
        throw this.fault;
      } else if (this.state !== 'open') {
        return;
      }
    }
  }

  private writerTurn(): Promise<void> {
    return new Promise((resolve) => {
      this.wakeWriter = resolve;
    });
  }
}
