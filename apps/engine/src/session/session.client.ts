import { Worker } from 'node:worker_threads';
import type { NamedTensor } from '@perch/triton/server';
import type { Session, SessionOptions } from './onnx-session.ts';
import type { Opened, RunOrder, RunResult, ThreadData } from './session-thread.ts';

// The built file: a thread cannot start from TypeScript.
const threadFile = new URL('./session-thread.js', import.meta.url);

interface Waiting {
  resolve: (outputs: NamedTensor[]) => void;
  reject: (error: Error) => void;
}

async function startThread(data: ThreadData): Promise<{ worker: Worker; opened: Exclude<Opened, { error: string }> }> {
  const worker = new Worker(threadFile, { workerData: data, execArgv: [] });
  const opened = await new Promise<Opened>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the session's thread ended with ${code} while it opened`)));
  });
  // By name: without one, Node's own listeners go as well and no message arrives any more.
  for (const event of ['message', 'error', 'exit']) worker.removeAllListeners(event);
  if ('error' in opened) {
    await worker.terminate();
    throw new Error(opened.error);
  }
  return { worker, opened };
}

/**
 * A session in a thread of its own, because onnxruntime-node computes (and loads) synchronously and would stop the server
 * meanwhile. The bytes of `feeds` are handed over, not copied: they may not be used afterwards. A thread that ends by
 * itself fails what it was computing, and the next run starts another.
 */
export async function openSessionThread(file: string, options: SessionOptions): Promise<Session> {
  const data: ThreadData = { file, ...options };
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let closed = false;
  let worker: Worker | undefined;

  const adopt = (started: Worker) => {
    worker = started;
    started.on('message', (result: RunResult) => {
      const { resolve, reject } = waiting.get(result.id)!;
      waiting.delete(result.id);
      if ('error' in result) reject(new Error(result.error));
      else resolve(result.outputs);
    });
    const lost = (why: string) => {
      if (worker === started) worker = undefined;
      for (const { reject } of waiting.values()) reject(new Error(`the instance's thread ended: ${why}`));
      waiting.clear();
    };
    started.on('error', (error) => lost(error.message));
    started.on('exit', (code) => lost(`exit ${code}`));
  };
  const first = await startThread(data);
  adopt(first.worker);

  return {
    ...first.opened,
    async run(feeds, outputs) {
      if (!worker && !closed) adopt((await startThread(data)).worker);
      const target = worker;
      if (!target) throw new Error('the session is closed');
      lastId += 1;
      const order: RunOrder = { id: lastId, feeds, outputs };
      const buffers = new Set(feeds.map(({ bytes }) => bytes.buffer as ArrayBuffer));
      return new Promise<NamedTensor[]>((resolve, reject) => {
        waiting.set(order.id, { resolve, reject });
        target.postMessage(order, [...buffers]);
      });
    },
    async close() {
      closed = true;
      await worker?.terminate();
    },
  };
}
