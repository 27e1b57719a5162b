import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type DataType, elementBytes } from '@perch/contracts';
import { headerLengthName } from '../wire/index.ts';
import { acceptedCoding, readBody, StatusFault, sendEmpty, sendFault, sendInfer, sendJson } from './http-exchange.ts';
import { type InferRoute, routeOf } from './http-routes.ts';
import { configJson, inferAnswer, statisticsMessage } from './json-answers.ts';
import { type HttpInfer, readJsonInfer, readRawInfer } from './json-request.ts';
import type { LoadParameters, ServingHost } from './model-host.ts';
import { ServingFault, servingFaultOf } from './serving-fault.ts';

export interface HttpServingOptions {
  host: ServingHost;
  /** Largest body, unpacked; default 1 GiB. */
  maxBodyBytes?: number;
  /** Told of faults that nobody expected, for the program's log. */
  onFault?: (error: unknown) => void;
}

function readInfer(host: ServingHost, route: InferRoute, body: Buffer, header: unknown): HttpInfer {
  // As Triton reads it: text that is no number counts as 0, and so does an empty body.
  const given = header === undefined ? undefined : Number.parseInt(String(header), 10) || 0;
  if (given !== undefined && (given < 0 || given > body.length))
    throw new StatusFault(400, `inference header size should be in range (0, ${body.length}), got: ${given}`);
  const length = given ?? body.length;
  const { model, version } = route;
  // An unknown model is told before anything in the body is.
  const { max_batch_size: maxBatchSize = 0 } = host.models.config(model, version);
  if (length > 0) return readJsonInfer(model, version, body.subarray(0, length), body.subarray(length));
  const { inputs } = host.models.metadata(model, version);
  return readRawInfer(
    model,
    version,
    body,
    inputs,
    maxBatchSize > 0,
    elementBytes[inputs[0]?.datatype as DataType] ?? 1,
  );
}

function readLoadParameters(body: Buffer): LoadParameters {
  if (body.length === 0) return {};
  let json: { parameters?: Record<string, unknown> };
  try {
    json = JSON.parse(body.toString());
  } catch (error) {
    throw new ServingFault('internal', `failed to parse the request JSON buffer: ${(error as Error).message}`);
  }
  const parameters: LoadParameters = {};
  for (const [key, value] of Object.entries(json?.parameters ?? {})) {
    if (key === 'unload_dependents' && typeof value === 'boolean') parameters[key] = value;
    else if (typeof value !== 'string')
      throw new ServingFault('internal', 'attempt to access JSON non-string as string');
    else parameters[key] = key.startsWith('file:') ? Buffer.from(value, 'base64') : value;
  }
  return parameters;
}

async function infer(
  options: HttpServingOptions,
  route: InferRoute,
  request: IncomingMessage,
  response: ServerResponse,
) {
  const { host } = options;
  const body = await readBody(request, options.maxBodyBytes ?? 2 ** 30);
  const { request: asked, isBinary } = readInfer(host, route, body, request.headers[headerLengthName]);
  const answer = await host.models.infer(asked);
  await sendInfer(response, inferAnswer(answer, isBinary), acceptedCoding(request));
}

async function index(host: ServingHost, body: Buffer, response: ServerResponse) {
  let ready = false;
  if (body.length > 0) ready = (readIndexRequest(body).ready ?? false) === true;
  const entries = await host.repository.index(ready);
  const shown = entries.map(({ name, version, state, reason }) => ({
    name,
    ...(version ? { version } : {}),
    ...(state ? { state } : {}),
    ...(reason ? { reason } : {}),
  }));
  sendJson(response, 200, shown);
}

function readIndexRequest(body: Buffer): { ready?: unknown } {
  try {
    return JSON.parse(body.toString()) ?? {};
  } catch (error) {
    throw new ServingFault('internal', `failed to parse the request JSON buffer: ${(error as Error).message}`);
  }
}

async function serve(options: HttpServingOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { host } = options;
  const route = routeOf(request.method, request.url ?? '/');
  const body = () => readBody(request, options.maxBodyBytes ?? 2 ** 30);
  switch (route.kind) {
    case 'infer':
      return infer(options, route, request, response);
    case 'live':
      return sendEmpty(response, 200);
    case 'ready':
      return sendEmpty(response, host.server().ready ? 200 : 400);
    case 'server': {
      const { name, version, extensions } = host.server();
      return sendJson(response, 200, { name, version, extensions });
    }
    case 'model-ready':
      if (host.models.isReady(route.model, route.version)) return sendEmpty(response, 200);
      throw new StatusFault(400, 'Model version not ready');
    case 'metadata':
      return sendJson(response, 200, host.models.metadata(route.model, route.version));
    case 'config':
      return sendJson(response, 200, configJson(host.models.config(route.model, route.version)));
    case 'statistics':
      return sendStatistics(host, response, route.model, route.version);
    case 'all-statistics':
      return sendStatistics(host, response);
    case 'index':
      return index(host, await body(), response);
    case 'load':
    case 'unload':
      await host.repository[route.kind](route.model, readLoadParameters(await body()));
      return sendEmpty(response, 200);
  }
}

function sendStatistics(host: ServingHost, response: ServerResponse, name?: string, version?: string): void {
  sendJson(response, 200, { model_stats: host.models.statistics(name, version).map(statisticsMessage) });
}

/** Triton's HTTP protocol over a host; not yet listening. */
export function createHttpServing(options: HttpServingOptions): Server {
  const server = createServer((request, response) => {
    serve(options, request, response).catch((error: unknown) => {
      const fault = servingFaultOf(error);
      if (!(error instanceof StatusFault) && fault.cause !== undefined) options.onFault?.(fault.cause);
      if (response.headersSent || response.destroyed) response.destroy();
      else sendFault(response, error, fault);
    });
  });
  server.keepAliveTimeout = 75_000;
  server.requestTimeout = 0;
  return server;
}
