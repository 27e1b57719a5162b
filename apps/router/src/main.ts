import cluster from 'node:cluster';
import { createLogger, runProgram, type Stoppable } from '@perch/platform';
import { startAlone } from './alone.ts';
import { RouterPrimary } from './cluster/primary.ts';
import { RouterWorker } from './cluster/worker.ts';
import { readRouterConfig } from './router.config.ts';

runProgram('router', async () => {
  const config = readRouterConfig();
  const logger = createLogger('router', config.logLevel);
  let app: Stoppable;
  if (cluster.isWorker) app = await new RouterWorker(config, logger).start();
  else if (config.workers > 1) {
    const primary = new RouterPrimary(config, logger);
    await primary.start();
    app = primary;
  } else app = await startAlone(config, logger);
  return { app, logger, graceMs: 30_000 + config.stopDelayMs };
});
