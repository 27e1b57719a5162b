import { createLogger, runProgram } from '@perch/platform';
import { readEngineConfig } from './engine.config.ts';
import { startEngine } from './engine.ts';

runProgram('engine', async () => {
  const config = readEngineConfig();
  const logger = createLogger('engine', config.PERCH_LOG_LEVEL);
  const { app } = await startEngine(config, logger);
  return { app, logger };
});
