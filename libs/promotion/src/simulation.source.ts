import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { AppError, type RolloutSimulation } from '@perch/contracts';
import { type RolloutForecast, simulateRollout } from './statistics/simulate-rollout.ts';

const mostMs = 4 * 60_000;
/** Run from its sources (by tests) there is no built file for a thread to load. */
const isBuilt = import.meta.url.endsWith('.js');

/**
 * Trials take seconds of a CPU: they run on a thread of their own, so that whoever is served meanwhile does not notice.
 * Throws `timeout` after four minutes.
 */
export function simulateAside(forecast: RolloutForecast): Promise<RolloutSimulation> {
  if (!isBuilt) return simulateRollout(forecast, async () => void (await turn()));
  const thread = new Worker(new URL('./simulation-thread.js', import.meta.url), { workerData: forecast });
  return new Promise<RolloutSimulation>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new AppError('timeout', `the simulation took over ${mostMs / 60_000} minutes; ask for fewer runs`)),
      mostMs,
    );
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new AppError('cancelled', 'the simulation ended early')));
    thread.once('exit', () => clearTimeout(timer));
  }).finally(() => thread.terminate());
}
