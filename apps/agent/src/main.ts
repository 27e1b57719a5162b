import { createHttpProgram, createLogger, Health, listenHttp, Metrics, runProgram } from '@perch/platform';
import { readAgentConfig } from './agent.config.ts';
import { AgentModule } from './agent.module.ts';

async function startAgent() {
  const config = readAgentConfig();
  const logger = createLogger('agent', config.PERCH_LOG_LEVEL);
  const health = new Health();
  const metrics = new Metrics({ processMetrics: true });
  const { PERCH_TLS_CERT: certFile, PERCH_TLS_KEY: keyFile } = config;
  const app = await createHttpProgram({
    module: AgentModule.forRoot({ config, logger, metrics, health }),
    logger,
    health,
    metrics,
    tls: certFile && keyFile ? { certFile, keyFile } : undefined,
  });
  await listenHttp(app, config.PERCH_LISTEN, logger);
  return { app, logger };
}

const [first] = process.argv.slice(2);
if (first === '--supervise') {
  process.stderr.write(
    'agent: --supervise is not available yet; start Triton by your own means and the agent beside it\n',
  );
  process.exitCode = 2;
} else if (first !== undefined) {
  process.stderr.write(`agent: unknown argument ${first}; everything is set by PERCH_… variables\n`);
  process.exitCode = 2;
} else {
  runProgram('agent', startAgent);
}
