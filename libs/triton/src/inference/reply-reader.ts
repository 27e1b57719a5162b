import { ChunkedBody } from './chunked-body.ts';
import { endOfHead, parseReplyHead, type ReplyHead } from './reply-head.ts';

export interface RawReply {
  head: ReplyHead;
  body: Buffer;
  /** Set by the connection: all of the request was written before the reply was complete. */
  sent: boolean;
}

const maxHeadBytes = 65_536;
const empty: Buffer = Buffer.alloc(0);

/**
 * A body buffer placed so that the first binary tensor, `headerLength` bytes into it, begins on an 8-byte boundary:
 * then a typed array can lie on it without a copy.
 */
function allocateBody(size: number, headerLength: number | undefined): Buffer {
  const whole = Buffer.allocUnsafe(size + 8);
  const pad = (8 - ((whole.byteOffset + (headerLength ?? 0)) % 8)) % 8;
  return whole.subarray(pad, pad + size);
}

/**
 * Reads one reply after another from the bytes of a connection. The bytes given are only valid during the call, so what
 * is kept is copied, once.
 */
export class ReplyReader {
  /** Bytes of the reply have been seen. */
  begun = false;
  private readonly maxBodyBytes: number;
  private held = empty;
  private head: ReplyHead | undefined;
  private body = empty;
  private filled = 0;
  private chunks: ChunkedBody | undefined;
  private lastBytes = empty;
  private lastHead: ReplyHead | undefined;

  constructor(maxBodyBytes: number) {
    this.maxBodyBytes = maxBodyBytes;
  }

  /** The reply when it is complete. Throws an `Error` on a malformed or too large one, and on bytes behind its end. */
  take(input: Buffer, length: number): RawReply | undefined {
    this.begun = true;
    const bytes = this.held.length > 0 ? Buffer.concat([this.held, input.subarray(0, length)]) : input;
    const to = bytes === input ? length : bytes.length;
    let at = 0;
    while (!this.head) {
      const end = endOfHead(bytes, at, to);
      if (end < 0) {
        if (to - at > maxHeadBytes) throw new Error('head of the reply too long');
        this.held = Buffer.from(bytes.subarray(at, to));
        return undefined;
      }
      this.startBody(this.readHead(bytes, at, end));
      at = end;
      this.held = empty;
    }
    return this.takeBody(bytes, at, to);
  }

  /** The connection ended: the reply, when its body was to end so. */
  end(): RawReply | undefined {
    const open = this.head && !this.chunks && this.head.contentLength === undefined;
    return open ? this.finish() : undefined;
  }

  /** Heads of a connection's replies are mostly the same, byte for byte. */
  private readHead(bytes: Buffer, at: number, end: number): ReplyHead {
    const { lastBytes, lastHead } = this;
    if (lastHead && lastBytes.length === end - at && bytes.compare(lastBytes, 0, end - at, at, end) === 0)
      return lastHead;
    const head = parseReplyHead(bytes.toString('latin1', at, end - 4));
    this.lastBytes = Buffer.from(bytes.subarray(at, end));
    this.lastHead = head;
    return head;
  }

  private startBody(head: ReplyHead): void {
    if (head.status < 200) return; // 100 Continue: the real head follows
    this.head = head;
    this.filled = 0;
    if (head.chunked) this.chunks = new ChunkedBody();
    if ((head.contentLength ?? 0) > this.maxBodyBytes) throw new Error('reply too large');
    this.body = head.contentLength === undefined ? empty : allocateBody(head.contentLength, head.headerLength);
  }

  private takeBody(bytes: Uint8Array, at: number, to: number): RawReply | undefined {
    const head = this.head!;
    let next = to;
    if (this.chunks) next = this.chunks.take(bytes, at, to, (from, until) => this.append(bytes, from, until));
    else if (head.contentLength === undefined) this.append(bytes, at, to);
    else {
      next = Math.min(to, at + head.contentLength - this.filled);
      this.body.set(bytes.subarray(at, next), this.filled);
      this.filled += next - at;
    }
    const done = this.chunks ? this.chunks.done : this.filled === head.contentLength;
    if (!done) return undefined;
    if (next < to) throw new Error('bytes behind the end of the reply');
    return this.finish();
  }

  /** For bodies of unknown length: doubles the room. */
  private append(bytes: Uint8Array, from: number, to: number): void {
    const wanted = this.filled + to - from;
    if (wanted > this.maxBodyBytes) throw new Error('reply too large');
    if (wanted > this.body.length) {
      const grown = allocateBody(Math.max(wanted, this.body.length * 2, 4_096), this.head!.headerLength);
      grown.set(this.body.subarray(0, this.filled));
      this.body = grown;
    }
    this.body.set(bytes.subarray(from, to), this.filled);
    this.filled = wanted;
  }

  private finish(): RawReply {
    const reply = { head: this.head!, body: this.body.subarray(0, this.filled), sent: true };
    this.head = undefined;
    this.chunks = undefined;
    this.body = empty;
    this.begun = false;
    return reply;
  }
}
