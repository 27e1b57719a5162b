import { readFileSync } from 'node:fs';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createHttpProgram, Health, type Logger } from '@perch/platform';
import { HttpServer } from './http1/index.ts';
import { type CollectSnapshots, RouterMetrics } from './metrics/router-metrics.ts';
import { NestPaths } from './other-paths.ts';
import type { RouterConfig } from './router.config.ts';
import { RouterModule, type Stopping } from './router.module.ts';
import type { Serving } from './serving/serving.ts';

export interface ServeParts {
  config: RouterConfig;
  logger: Logger;
  serving: Serving;
  control: Stopping;
  collect: CollectSnapshots;
}

/** One serving process: our own HTTP server in front, the Nest application behind it. Listens; resolves to the address. */
export async function startServing(parts: ServeParts): Promise<{ app: NestFastifyApplication; address: string }> {
  const { config, logger, serving, control, collect } = parts;
  const paths = new NestPaths();
  const tls = config.tls && { cert: readFileSync(config.tls.certFile), key: readFileSync(config.tls.keyFile) };
  const server = new HttpServer({
    application: serving.application(paths),
    stopDelayMs: config.stopDelayMs,
    ...(tls ? { tls } : {}),
  });
  const health = new Health();
  health.add('table', () => (serving.tables.current ? undefined : 'no routing table yet'));
  health.add('stopping', () => (server.stopping ? 'stopping' : undefined));
  const metrics = new RouterMetrics();
  metrics.from(collect);
  const module = RouterModule.forRoot(server, serving, control);
  const app = await createHttpProgram({ module, logger, health, metrics });
  await app.init();
  await app.getHttpAdapter().getInstance().ready();
  paths.use(app);
  const { host, port } = config.listen;
  const bound = await server.listen(port, host);
  return { app, address: `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${bound}` };
}
