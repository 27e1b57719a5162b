import { AppError, shownMessage } from '@perch/contracts';
import { createHttpProgram, createLogger, Health, listenHttp, Metrics, runProgram } from '@perch/platform';
import { type PlannedCommand, planCommand } from '@perch/sync';
import { type AgentConfig, readAgentConfig } from './agent.config.ts';
import { AgentModule } from './agent.module.ts';
import { readCommandLine } from './command-line.plan.ts';
import { askForDrain } from './drain.client.ts';
import { exitTimeoutMs } from './supervise-setup.ts';

/** For everything but the drain and Triton's end. */
const stopGraceMs = 30_000;

function serverCommand(config: AgentConfig, words: readonly string[]): PlannedCommand {
  const plan = planCommand(words, {
    http: config.PERCH_TRITON_HTTP,
    grpc: config.PERCH_TRITON_GRPC,
    metrics: config.PERCH_TRITON_METRICS,
    repository: config.PERCH_TRITON_REPOSITORY,
  });
  if (plan.faults.length > 0) throw new AppError('invalid', `--supervise: ${plan.faults.join('; ')}`);
  return plan;
}

async function startAgent(supervise: readonly string[] | undefined) {
  const config = readAgentConfig();
  const command = supervise ? serverCommand(config, supervise) : null;
  const logger = createLogger('agent', config.PERCH_LOG_LEVEL);
  const health = new Health();
  const metrics = new Metrics({ processMetrics: true });
  const { PERCH_TLS_CERT: certFile, PERCH_TLS_KEY: keyFile } = config;
  if (command) logger.info('the model server is a child of this agent', { filledIn: command.filled });
  const app = await createHttpProgram({
    module: AgentModule.forRoot({ config, logger, metrics, health, command }),
    logger,
    health,
    metrics,
    tls: certFile && keyFile ? { certFile, keyFile } : undefined,
  });
  await listenHttp(app, config.PERCH_LISTEN, logger);
  const graceMs = stopGraceMs + config.PERCH_DRAIN_TIMEOUT_MS + (command ? exitTimeoutMs(config, command) : 0);
  return { app, logger, graceMs };
}

async function drain(): Promise<void> {
  const outcome = await Promise.resolve()
    .then(() => askForDrain(readAgentConfig()))
    .catch((error: unknown) => ({ words: shownMessage(error), exitCode: 2 }));
  process.stderr.write(`agent: ${outcome.words}\n`);
  process.exitCode = outcome.exitCode;
}

const line = readCommandLine(process.argv.slice(2));
if (line.verb === 'refuse') {
  process.stderr.write(`agent: ${line.fault}\n`);
  process.exitCode = 2;
} else if (line.verb === 'drain') {
  await drain();
} else {
  runProgram('agent', () => startAgent(line.supervise));
}
