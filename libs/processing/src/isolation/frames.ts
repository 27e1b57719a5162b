import type { Batch } from './batch.ts';

/** Batches on a pipe: lengths of the messages' JSON and of the bytes, four bytes each, then both. */

const headBytes = 8;
/** In place of a length: what follows is the id of the call whose hook runs from now on. */
const markLength = 0xffff_ffff;
/** A batch beyond this is a fault. */
const mostBytes = 0x7fff_ffff;

export function frameOf<Message>({ messages, bytes }: Batch<Message>): Buffer[] {
  const text = Buffer.from(JSON.stringify(messages));
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32LE(text.length, 0);
  head.writeUInt32LE(bytes.length, 4);
  return [head, text, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)];
}

export function markFrame(call: number): Buffer {
  const frame = Buffer.allocUnsafe(headBytes);
  frame.writeUInt32LE(markLength, 0);
  frame.writeUInt32LE(call, 4);
  return frame;
}

/** Puts batches together from pieces of a pipe. Throws for a length that no batch has. */
export class FrameReader<Message> {
  private pieces: Buffer[] = [];
  private size = 0;
  private readonly onBatch: (batch: Batch<Message>) => void;
  private readonly onMark: (call: number) => void;

  constructor(onBatch: (batch: Batch<Message>) => void, onMark: (call: number) => void = () => undefined) {
    this.onBatch = onBatch;
    this.onMark = onMark;
  }

  push(piece: Buffer): void {
    this.pieces.push(piece);
    this.size += piece.length;
    while (this.next());
  }

  private next(): boolean {
    if (this.size < headBytes) return false;
    const head = this.peek(headBytes);
    const first = head.readUInt32LE(0);
    const second = head.readUInt32LE(4);
    if (first === markLength) {
      this.take(headBytes);
      this.onMark(second);
      return true;
    }
    if (first + second > mostBytes) throw new Error(`a batch of ${first + second} bytes`);
    if (this.size < headBytes + first + second) return false;
    this.take(headBytes);
    const messages = JSON.parse(this.take(first).toString('utf8')) as Message[];
    // from the beginning of memory of its own, so that numbers in it are aligned
    const bytes = second === 0 ? new Uint8Array(0) : new Uint8Array(this.take(second));
    this.onBatch({ messages, bytes });
    return true;
  }

  /** Joined only when what is wanted lies across pieces. */
  private peek(length: number): Buffer {
    if (this.pieces[0]!.length < length) this.pieces = [Buffer.concat(this.pieces)];
    return this.pieces[0]!;
  }

  private take(length: number): Buffer {
    if (length === 0) return Buffer.alloc(0);
    const whole = this.peek(length);
    const taken = whole.subarray(0, length);
    if (whole.length === length) this.pieces.shift();
    else this.pieces[0] = whole.subarray(length);
    this.size -= length;
    return taken;
  }
}
