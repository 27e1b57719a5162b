import { access, constants } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createHttpProgram, Health, type Logger, listenHttp, Metrics } from '@perch/platform';
import { ARTIFACT_STORE, type ArtifactStore } from '@perch/registry';
import { AppModule } from './app.module.ts';
import { ConnectionService } from './connection.service.ts';
import type { ControlPlaneConfig } from './control-plane.config.ts';
import { fastifyOptions, prepareHttp } from './http.ts';

/** Undefined when the artifact store answers. No object has this name; that it is missing is an answer. */
async function checkStore({ PERCH_STORE_URL }: ControlPlaneConfig, store: ArtifactStore): Promise<string | undefined> {
  if (!PERCH_STORE_URL.startsWith('file:')) await store.head('health');
  else await access(fileURLToPath(PERCH_STORE_URL), constants.R_OK | constants.W_OK);
  return undefined;
}

export interface RunningControlPlane {
  app: NestFastifyApplication;
  /** `http://host:port` that it really listens on. */
  address: string;
  close(): Promise<void>;
}

/** How long a start waits for Postgres before it listens anyway and answers `unavailable` until it comes. */
const usualPatienceMs = 10_000;

/** The whole program in this process, from settings to listening. */
export async function startControlPlane(
  config: ControlPlaneConfig,
  logger: Logger,
  patienceMs = usualPatienceMs,
): Promise<RunningControlPlane> {
  const health = new Health();
  const metrics = new Metrics({ processMetrics: true });
  const { PERCH_TLS_CERT: certFile, PERCH_TLS_KEY: keyFile } = config;
  let listening = `http://${config.PERCH_LISTEN.host}:${config.PERCH_LISTEN.port}`;
  const publicUrl = () => config.PERCH_PUBLIC_URL?.replace(/\/+$/, '') ?? listening;
  const app = await createHttpProgram({
    module: AppModule.forRoot({ config, logger, metrics, health, publicUrl }),
    logger,
    health,
    metrics,
    tls: certFile && keyFile ? { certFile, keyFile } : undefined,
    fastify: fastifyOptions,
  });
  try {
    const connection = app.get(ConnectionService);
    await prepareHttp(app, { logger, metrics, requireOpen: () => connection.requireOpen() });
    health.add('database', () => connection.check());
    health.add('store', () => checkStore(config, app.get(ARTIFACT_STORE)));
    await connection.start(patienceMs);
    listening = await listenHttp(app, config.PERCH_LISTEN, logger);
    return { app, address: listening, close: () => app.close() };
  } catch (error) {
    await app.close().catch(() => undefined);
    throw error;
  }
}
