import 'reflect-metadata';
import { mkdir } from 'node:fs/promises';
import type { Server, ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { NestFactory } from '@nestjs/core';
import { type ListenAddress, type Logger, Metrics, nestLogger, type Stoppable } from '@perch/platform';
import { bindGrpc, createGrpcServing, createHttpServing, stopGrpc } from '@perch/triton/server';
import type { EngineConfig } from './engine.config.ts';
import { Engine, EngineModule } from './engine.module.ts';
import { createMetricsServer } from './metrics-server.ts';
import type { OpenSession } from './session/onnx-session.ts';

/** Where a running engine answers, each as `host:port`. */
export interface EngineAddresses {
  http: string;
  grpc: string;
  metrics: string;
}

const shown = (host: string, port: number): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

function listen(server: Server, at: ListenAddress): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at.port, at.host, () => resolve(shown(at.host, (server.address() as AddressInfo).port)));
  });
}

/**
 * Stops listening, answers what was accepted, closes each connection when it is idle, and all of them after `graceMs`.
 * Node's own close would at once cut connections whose first request is still on its way through the socket.
 */
async function closeHttp(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  server.prependListener('request', (_request, response: ServerResponse) => response.setHeader('Connection', 'close'));
  const sweep = setInterval(() => server.closeIdleConnections(), 100);
  const late = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(late);
}

/** Starts the engine; resolves when all three ports listen. `close` finishes what was accepted. */
export async function startEngine(
  config: EngineConfig,
  logger: Logger,
  openSession?: OpenSession,
): Promise<{ app: Stoppable; addresses: EngineAddresses }> {
  await mkdir(config.PERCH_ENGINE_REPOSITORY, { recursive: true });
  const context = await NestFactory.createApplicationContext(EngineModule.forRoot(config, logger, openSession), {
    logger: nestLogger(logger),
    abortOnError: false,
  });
  const host = context.get(Engine);
  const onFault = (error: unknown) => logger.error('unexpected fault of a request', { error });
  const http = createHttpServing({ host, onFault });
  const grpc = createGrpcServing({ host, onFault });
  const metrics = createMetricsServer(context.get(Metrics));
  const { PERCH_ENGINE_GRPC: grpcAt } = config;
  const stop = async () => {
    await Promise.all([closeHttp(http, 10_000), stopGrpc(grpc, 10_000)]);
    await context.close();
    await closeHttp(metrics, 1_000);
  };
  try {
    const addresses: EngineAddresses = {
      http: await listen(http, config.PERCH_ENGINE_HTTP),
      grpc: shown(grpcAt.host, await bindGrpc(grpc, grpcAt.host, grpcAt.port)),
      metrics: await listen(metrics, config.PERCH_ENGINE_METRICS),
    };
    logger.info('listening', { address: `http://${addresses.http}`, ...addresses });
    return { app: { close: stop }, addresses };
  } catch (error) {
    await stop();
    throw error;
  }
}
