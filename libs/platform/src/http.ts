import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import type { DynamicModule, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { ListenAddress } from './env.config.ts';
import type { Health } from './health.ts';
import { type Logger, nestLogger } from './logger.ts';
import type { Metrics } from './metrics.ts';

export interface HttpProgram {
  module: Type | DynamicModule;
  logger: Logger;
  health: Health;
  metrics: Metrics;
  tls?: { certFile: string; keyFile: string };
  /** Further options of Fastify's own constructor (body limit, server factory, …). */
  fastify?: Record<string, unknown>;
}

/** A Nest application on Fastify with /health/live, /health/ready and /metrics; not yet listening. */
export async function createHttpProgram(program: HttpProgram): Promise<NestFastifyApplication> {
  const https = program.tls && { cert: readFileSync(program.tls.certFile), key: readFileSync(program.tls.keyFile) };
  const adapter = new FastifyAdapter({
    ...(https ? { https } : {}),
    forceCloseConnections: 'idle',
    ...program.fastify,
  } as never);
  const app = await NestFactory.create<NestFastifyApplication>(program.module, adapter, {
    logger: nestLogger(program.logger),
  });
  const fastify = app.getHttpAdapter().getInstance();
  fastify.get('/health/live', async (_request, reply) => reply.code(200).send({ live: true }));
  fastify.get('/health/ready', async (_request, reply) => {
    const report = await program.health.report();
    return reply.code(report.ready ? 200 : 503).send(report);
  });
  fastify.get('/metrics', async (_request, reply) => {
    const { contentType, body } = await program.metrics.render();
    return reply.header('content-type', contentType).send(body);
  });
  return app;
}

/** Listens and logs the one line that names the real address. Returns it as `http://host:port`. */
export async function listenHttp(app: NestFastifyApplication, at: ListenAddress, logger: Logger): Promise<string> {
  await app.listen(at.port, at.host);
  const bound = app.getHttpServer().address();
  const port = typeof bound === 'object' && bound ? bound.port : at.port;
  const scheme = 'setSecureContext' in app.getHttpServer() ? 'https' : 'http';
  const address = `${scheme}://${at.host.includes(':') ? `[${at.host}]` : at.host}:${port}`;
  logger.info('listening', { address });
  return address;
}
