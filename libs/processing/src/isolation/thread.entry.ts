import { parentPort, workerData } from 'node:worker_threads';
import type { Batch } from './batch.ts';
import { Inside } from './inside.ts';
import { leaveBy } from './last-words.ts';
import type { FromCell, ToCell } from './wire.ts';

/** The first code of a worker thread that runs a module. `marks`: the call whose hook runs, and the last one begun; the router reads them. */
const { marks } = workerData as { marks: Float64Array };
const port = parentPort!;

const inside = new Inside({
  post({ messages, bytes }: Batch<FromCell>) {
    if (bytes.length === 0) port.postMessage([messages]);
    else port.postMessage([messages, bytes], [bytes.buffer as ArrayBuffer]);
  },
  mark(call) {
    marks[0] = call;
    if (call > 0) marks[1] = call;
  },
});

leaveBy(inside, (exit) => exit());

const none = new Uint8Array(0);
port.on('message', ([messages, bytes = none]: [ToCell[], Uint8Array?]) => inside.receive({ messages, bytes }));
// what most bundles import: there before the first one comes
await import('../index.ts');
