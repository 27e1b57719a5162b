import { parentPort, workerData } from 'node:worker_threads';
import type { NamedTensor } from '@perch/triton/server';
import { type GraphTensor, openOnnxSession, type SessionOptions } from './onnx-session.ts';

/** First message of a thread: what it opened, or why it could not. */
export type Opened = { inputs: GraphTensor[]; outputs: GraphTensor[] } | { error: string };
export interface RunOrder {
  id: number;
  feeds: NamedTensor[];
  outputs: readonly string[];
}
export type RunResult = { id: number; outputs: NamedTensor[] } | { id: number; error: string };
export interface ThreadData extends SessionOptions {
  file: string;
}

const port = parentPort;
const innerMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function serve({ file, threads }: ThreadData): Promise<void> {
  if (!port) return;
  const session = await openOnnxSession(file, { threads });
  port.on('message', ({ id, feeds, outputs }: RunOrder) => {
    // onnxruntime's own memory cannot be handed over, so the outputs are copied.
    session
      .run(feeds, outputs)
      .then((results) => port.postMessage({ id, outputs: results } satisfies RunResult))
      .catch((error) => port.postMessage({ id, error: innerMessage(error) } satisfies RunResult));
  });
  port.postMessage({ inputs: session.inputs, outputs: session.outputs } satisfies Opened);
}

serve(workerData as ThreadData).catch((error) => port?.postMessage({ error: innerMessage(error) } satisfies Opened));
