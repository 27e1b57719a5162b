import type { Batch } from './batch.ts';
import type { CellListener, CellPort } from './cell.port.ts';
import type { FromCell } from './wire.ts';

type OpenPort = (listener: CellListener) => CellPort;

const refillAfterMs = 1_000;

/** Hears for nobody until the cell is taken. */
class Relay implements CellListener {
  to: CellListener | undefined;
  dead = false;

  heard(batch: Batch<FromCell>): void {
    this.to?.heard(batch);
  }
  gone(words: string): void {
    this.dead = true;
    this.to?.gone(words);
  }
  printed(text: string): void {
    this.to?.printed(text);
  }
}

/**
 * Keeps one cell without a module ready: starting one takes a third of a second of CPU, in which a module whose cell
 * has ended serves nothing.
 */
export class Spare {
  private readonly open: OpenPort;
  private ready: { relay: Relay; port: CellPort } | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(open: OpenPort) {
    this.open = open;
  }

  take(listener: CellListener): CellPort {
    const { ready } = this;
    this.ready = undefined;
    if (!this.closed) this.timer ??= setTimeout(() => this.refill(), refillAfterMs).unref();
    if (!ready || ready.relay.dead) return this.open(listener);
    ready.relay.to = listener;
    return ready.port;
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    void this.ready?.port.end();
    this.ready = undefined;
  }

  private refill(): void {
    this.timer = undefined;
    if (this.closed || (this.ready && !this.ready.relay.dead)) return;
    const relay = new Relay();
    this.ready = { relay, port: this.open(relay) };
  }
}
