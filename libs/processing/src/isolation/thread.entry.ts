import { parentPort, workerData } from 'node:worker_threads';
import type { Batch } from './batch.ts';
import { Inside } from './inside.ts';
import type { FromCell, ToCell } from './wire.ts';

/** The first code of a worker thread that runs a module. `running`: id of the call whose hook runs; the router reads it. */
const { running } = workerData as { running: Float64Array };
const port = parentPort!;

const inside = new Inside({
  post({ messages, bytes }: Batch<FromCell>) {
    if (bytes.length === 0) port.postMessage([messages]);
    else port.postMessage([messages, bytes], [bytes.buffer as ArrayBuffer]);
  },
  mark(call) {
    running[0] = call;
  },
});

const ended = (what: string) => (error: unknown) => {
  const words = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  inside.die(`${what} (${words.slice(0, 300)})`);
  leave(1);
};
const leave = process.exit.bind(process);
process.on('uncaughtException', ended('an error that nobody caught'));
process.on('unhandledRejection', ended('a rejected promise that nobody waited for'));
process.exit = ((code?: number) => {
  inside.die(`process.exit(${code ?? ''})`);
  leave(1);
}) as typeof process.exit;
// a mistake in one module should not end the router: no boundary, since threads share the process
process.kill = () => {
  throw new Error('process.kill is not for modules');
};

const none = new Uint8Array(0);
port.on('message', ([messages, bytes = none]: [ToCell[], Uint8Array?]) => inside.receive({ messages, bytes }));
