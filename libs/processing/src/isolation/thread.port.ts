import { Worker } from 'node:worker_threads';
import type { Batch } from './batch.ts';
import type { CellLimits, CellListener, CellPort } from './cell.port.ts';
import type { FromCell, ToCell } from './wire.ts';

/** Threads run what was built, also where this file is read from its source. */
export const builtEntry = (name: string): URL =>
  new URL(import.meta.url.endsWith('.ts') ? `../../dist/isolation/${name}.js` : `./${name}.js`, import.meta.url);

const youngHeapMb = 32;
const stackMb = 4;
const none = new Uint8Array(0);

/** A worker thread: its own heap with a cap, no environment; it shares the process with the router. */
export class ThreadPort implements CellPort {
  readonly kind = 'worker';
  readonly residentBytes = 0;
  private readonly worker: Worker;
  private readonly marks = new Float64Array(new SharedArrayBuffer(16));
  private utilization: ReturnType<Worker['performance']['eventLoopUtilization']> | undefined;

  constructor({ heapMb }: CellLimits, listener: CellListener) {
    this.worker = new Worker(builtEntry('thread.entry'), {
      workerData: { marks: this.marks },
      env: {},
      argv: [],
      execArgv: [],
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: youngHeapMb, stackSizeMb: stackMb },
    });
    let words = 'it ended by itself';
    this.worker.on('message', ([messages, bytes = none]: [FromCell[], Uint8Array?]) =>
      listener.heard({ messages, bytes }),
    );
    this.worker.on('messageerror', () => listener.printed('a message could not be read'));
    this.worker.on('error', (error: Error & { code?: string }) => {
      words = error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? `its heap grew beyond ${heapMb} MB` : error.message;
    });
    this.worker.on('exit', () => listener.gone(words));
    for (const stream of [this.worker.stdout, this.worker.stderr])
      stream.on('data', (piece: Buffer) => listener.printed(piece.toString('utf8')));
  }

  post({ messages, bytes }: Batch<ToCell>): void {
    if (bytes.length === 0) this.worker.postMessage([messages]);
    else this.worker.postMessage([messages, bytes], [bytes.buffer as ArrayBuffer]);
  }

  running(): number {
    return this.marks[0]!;
  }

  begun(): number {
    return this.marks[1]!;
  }

  busyShare(): number {
    const now = this.worker.performance.eventLoopUtilization();
    const { utilization } = this.worker.performance.eventLoopUtilization(now, this.utilization);
    this.utilization = now;
    return utilization;
  }

  async end(): Promise<void> {
    await this.worker.terminate();
  }
}
