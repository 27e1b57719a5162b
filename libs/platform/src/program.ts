import { AppError, innerMessage } from '@perch/contracts';
import type { Logger } from './logger.ts';

/** Anything that can be stopped in order: a Nest application, or a list of them. */
export interface Stoppable {
  close(): Promise<void>;
}

/** A program that runs. `graceMs`: how long it may take to stop; default 30 s. */
export interface Running {
  app: Stoppable;
  logger: Logger;
  graceMs?: number;
}

/**
 * Runs a program until SIGTERM or SIGINT: starts it, stops it gracefully (a second signal or `graceMs` ends it at
 * once), exits 0. Bad settings exit 2 with one line; any other failed start exits 1.
 */
export function runProgram(name: string, start: () => Promise<Running>): void {
  const stop = async ({ app, logger, graceMs = 30_000 }: Running, signal: string) => {
    logger.info('stopping', { signal });
    setTimeout(() => process.exit(1), graceMs).unref();
    await app.close().catch((error) => logger.error('stop failed', { error }));
    process.exit(0);
  };
  start().then(
    (running) => {
      const { logger } = running;
      let stopping = false;
      for (const signal of ['SIGTERM', 'SIGINT'] as const) {
        process.on(signal, () => {
          if (stopping) process.exit(1);
          stopping = true;
          void stop(running, signal);
        });
      }
      process.on('unhandledRejection', (error) => logger.error('unhandled rejection', { error }));
    },
    (error) => {
      process.stderr.write(`${name}: ${innerMessage(error)}\n`);
      process.exit(error instanceof AppError && error.code === 'invalid' ? 2 : 1);
    },
  );
}
