import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import helmet from '@fastify/helmet';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger, Metrics } from '@perch/platform';
import { answerProblem } from './admin-api/problem.filter.ts';

/** Manifests of 2,000 files take about half of it. Blobs go past this: the folder store reads them as a stream. */
const bodyLimitBytes = 4 * 1024 * 1024;

/** The caller's own id when it is one, so that its log lines and ours can be put together. */
export function requestIdOf(header: unknown, newId: () => string = randomUUID): string {
  return typeof header === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(header) ? header : newId();
}

/** Options of Fastify's own constructor. */
export const fastifyOptions = {
  bodyLimit: bodyLimitBytes,
  genReqId: (request: IncomingMessage) => requestIdOf(request.headers['x-request-id']),
  routerOptions: { maxParamLength: 700 }, // an endpoint's name, percent-encoded, is one segment
  requestTimeout: 0, // long polls and uploads; headers have Node's own limit
};

/** Request ids, security headers, 503 while the database has not been reached yet, and one metric and one debug line a request. */
export async function prepareHttp(
  app: NestFastifyApplication,
  { logger, metrics, requireOpen }: { logger: Logger; metrics: Metrics; requireOpen: () => void },
): Promise<void> {
  const requests = metrics.counter('perch_admin_requests_total', 'Requests by route and status.', [
    'method',
    'route',
    'status',
  ]);
  const seconds = metrics.histogram('perch_admin_request_duration_seconds', 'Time to answer, by route.', [
    'method',
    'route',
  ]);
  await app.register(helmet as never);
  const adapter = app.getHttpAdapter();
  const fastify = adapter.getInstance();
  // A route keeps the error handler that is set when it is added; Nest sets its own after the routes, too late for
  // what fails before a controller (a body that is no JSON).
  fastify.setErrorHandler((error, request, reply) => answerProblem(error, request, reply, logger));
  adapter.setErrorHandler = () => undefined;
  fastify.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    if (/^\/(api|internal|store)\//.test(request.url)) requireOpen();
  });
  fastify.addHook('onResponse', async (request, reply) => {
    const { method } = request;
    const route = request.routeOptions.url ?? 'unknown';
    const ms = reply.elapsedTime;
    requests.add({ method, route, status: String(reply.statusCode) });
    seconds.observe({ method, route }, ms / 1_000);
    logger.debug('request', { requestId: request.id, method, route, status: reply.statusCode, ms });
  });
}
