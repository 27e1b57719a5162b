import { parentPort, workerData } from 'node:worker_threads';
import { simulateRollout } from './statistics/simulate-rollout.ts';

// The whole program of the thread: one forecast in, one simulation out.
parentPort?.postMessage(await simulateRollout(workerData));
