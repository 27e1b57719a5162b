import { connect, type Socket } from 'node:net';

/** A client that sends bytes and keeps all that comes back. */
export class Wire {
  got = '';
  ended = false;
  readonly socket: Socket;

  /** `encoding`: latin1 keeps one character a byte. */
  constructor(port: number, encoding: 'latin1' | 'utf8' = 'latin1') {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (bytes) => (this.got += bytes.toString(encoding)));
    this.socket.on('close', () => (this.ended = true));
    this.socket.on('error', () => undefined);
  }
  get statuses(): number[] {
    return [...this.got.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1]));
  }
  /** Behind the first head. */
  get body(): string {
    return this.got.slice(this.got.indexOf('\r\n\r\n') + 4);
  }
}
