import { type SlabPool, slabBytes } from './slab-pool.ts';

export interface Part {
  from: number;
  /** First byte behind the part. */
  end: number;
}

interface Piece {
  slab: Buffer;
  length: number;
}

/** Bytes of one part between the connection that brings them and the file that takes them. */
export class PartQueue {
  readonly range: Part;
  /** Offset in the blob of the next byte to arrive. */
  at: number;
  private readonly pool: SlabPool;
  private readonly limitBytes: number;
  private readonly full: Piece[] = [];
  private filling: Piece | undefined;
  private heldBytes = 0;
  private state: 'open' | 'ended' | 'failed' | 'abandoned' = 'open';
  private fault: unknown;
  private wakeReader: (() => void) | undefined;
  private wakeWriter: (() => void) | undefined;

  constructor(range: Part, limitBytes: number, pool: SlabPool) {
    this.range = range;
    this.at = range.from;
    this.limitBytes = limitBytes;
    this.pool = pool;
  }

  /**
   * Copies the chunk. False: full, wait for `hasRoom` before the next one. Never behind the last byte: nothing follows
   * it, and undici 7.30 throws outside of any promise when a store closes a connection that was paused at its end.
   */
  push(chunk: Uint8Array): boolean {
    this.at += chunk.length;
    if (this.state !== 'open') return true;
    for (let done = 0; done < chunk.length; ) {
      this.filling ??= { slab: this.pool.take(), length: 0 };
      const { slab, length } = this.filling;
      const count = Math.min(slabBytes - length, chunk.length - done);
      slab.set(chunk.subarray(done, done + count), length);
      this.filling.length += count;
      done += count;
      if (this.filling.length === slabBytes) this.close();
    }
    this.heldBytes += chunk.length;
    return this.heldBytes < this.limitBytes || this.at >= this.range.end;
  }

  async hasRoom(): Promise<void> {
    while (this.state === 'open' && this.heldBytes >= this.limitBytes) {
      // A limit below a slab would never be read otherwise.
      this.close();
      await this.writerTurn();
    }
  }

  /** Resolves when the reader has taken everything. */
  async drained(): Promise<void> {
    while (this.state !== 'abandoned' && this.heldBytes > 0) await this.writerTurn();
  }

  end(): void {
    this.finish('ended');
  }

  fail(fault: unknown): void {
    if (this.state === 'open') this.fault = fault;
    this.finish('failed');
  }

  /** Nobody reads any more. */
  abandon(): void {
    this.finish('ended');
    this.state = 'abandoned';
    for (const { slab } of this.full.splice(0)) this.pool.give(slab);
    this.heldBytes = 0;
    this.wakeWriter?.();
  }

  /** The bytes in order, in pieces that are worth a write; each is good until the next is asked for. Those before a fault come first. */
  async *pieces(): AsyncGenerator<Uint8Array> {
    for (;;) {
      while (this.state === 'open' && this.full.length === 0) {
        await new Promise<void>((resolve) => {
          this.wakeReader = resolve;
        });
      }
      const piece = this.full.shift();
      if (piece) {
        try {
          yield piece.slab.subarray(0, piece.length);
        } finally {
          this.pool.give(piece.slab);
        }
        this.heldBytes -= piece.length;
        this.wakeWriter?.();
      } else if (this.state === 'failed') {
        throw this.fault;
      } else {
        return;
      }
    }
  }

  private close(): void {
    if (this.filling) this.full.push(this.filling);
    this.filling = undefined;
    this.wakeReader?.();
  }

  private finish(state: 'ended' | 'failed'): void {
    if (this.state !== 'open') return;
    this.state = state;
    this.close();
    this.wakeReader?.();
    this.wakeWriter?.();
  }

  private writerTurn(): Promise<void> {
    return new Promise((resolve) => {
      this.wakeWriter = resolve;
    });
  }
}
