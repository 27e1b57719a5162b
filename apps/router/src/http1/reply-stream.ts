import type { Socket } from 'node:net';
import { AppError } from '@perch/contracts';

/** What a stream needs of its connection. */
export interface StreamOwner {
  /** The client takes nothing more for now, or takes more again: the server's sweep ends what is stalled for long. */
  stalled(is: boolean): void;
  /** Its last byte is handed over. `close`: no further request is taken on this connection. */
  streamed(close: boolean): void;
}

/** What may lie unsent when a piece is handed over; a writer that waits for each piece never comes near. */
const mostUnsentBytes = 4 * 1_048_576;

const clientLeft = () => new AppError('cancelled', 'the client went away');

/** A reply that is sent piece by piece as it comes about; its head is out already. */
export class ReplyStream {
  private readonly owner: StreamOwner;
  private readonly socket: Socket;
  private readonly chunked: boolean;
  private over = false;
  private full: Promise<void> | undefined;
  private giveUp: ((error: AppError) => void) | undefined;

  /** Without `chunked` the reply ends with the connection, as HTTP/1.0 has it. */
  constructor(owner: StreamOwner, socket: Socket, chunked: boolean) {
    this.owner = owner;
    this.socket = socket;
    this.chunked = chunked;
  }

  /**
   * Hands one piece over; a promise when the client does not take more for now, which rejects with `cancelled` when it
   * goes away. Throws `cancelled` when it has gone, `module` when pieces come without waiting for it.
   */
  write(text: string): Promise<void> | undefined {
    if (this.over) throw clientLeft();
    if (text === '') return this.full;
    if (this.socket.writableLength > mostUnsentBytes)
      throw new AppError('module', 'events were sent faster than the client takes them: wait for each ctx.stream');
    const framed = this.chunked ? `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n` : text;
    return this.socket.write(framed, 'utf8') ? undefined : this.drained();
  }

  /** The reply is whole. `close` ends the connection with it. */
  end(close = false): void {
    if (this.over) return;
    this.over = true;
    if (this.chunked) this.socket.write('0\r\n\r\n', 'latin1');
    this.owner.streamed(close || !this.chunked);
  }

  /** The client went away. */
  left(): void {
    this.over = true;
    this.giveUp?.(clientLeft());
  }

  private drained(): Promise<void> {
    this.full ??= new Promise((resolve, reject) => {
      this.owner.stalled(true);
      this.giveUp = reject;
      this.socket.once('drain', () => {
        this.full = undefined;
        this.giveUp = undefined;
        if (!this.over) this.owner.stalled(false);
        resolve();
      });
    });
    this.full.catch(() => undefined); // whoever does not wait hears of it at the next piece
    return this.full;
  }
}
