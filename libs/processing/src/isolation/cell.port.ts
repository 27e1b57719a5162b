import type { Batch } from './batch.ts';
import type { FromCell, ToCell } from './wire.ts';

/** What a module runs in, seen from the router: a worker thread, or a process of its own. */
export interface CellPort {
  readonly kind: 'worker' | 'process';
  post(batch: Batch<ToCell>): void;
  /** The call whose hook runs right now; 0: none, or it waits for something. */
  running(): number;
  /** The highest id of a call whose hook it has begun. */
  begun(): number;
  /** Of a process of its own, when it was last looked at; else 0. */
  readonly residentBytes: number;
  /** Share of the time that it was busy since it was last asked. */
  busyShare(): number;
  /** Ends it at once; resolves when it is gone. */
  end(): Promise<void>;
}

export interface CellListener {
  heard(batch: Batch<FromCell>): void;
  /** Once; `words`: what ended it, where that is known. */
  gone(words: string): void;
  /** What it wrote to its console. */
  printed(text: string): void;
}

/** Bounds of one cell. */
export interface CellLimits {
  heapMb: number;
  /** Of buffers outside of the heap in a thread; of everything in a process. */
  memoryMb: number;
}
