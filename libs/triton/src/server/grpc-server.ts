import * as grpc from '@grpc/grpc-js';
import { elementBytes } from '@perch/contracts';
import {
  channelOptions,
  decodeInferRequest,
  encodeInferResponse,
  healthMethods,
  type InferResponse,
  messageType,
  plainOf,
  serviceMethods,
} from '../wire/index.ts';
import { statisticsMessage } from './json-answers.ts';
import { refuseSharedMemory } from './json-request.ts';
import type { LoadParameters, ServingHost } from './model-host.ts';
import { grpcStatus, ServingFault, servingFaultOf } from './serving-fault.ts';

export interface GrpcServingOptions {
  host: ServingHost;
  onFault?: (error: unknown) => void;
}

type Plain = Record<string, unknown>;
type Answer = (request: Plain) => Promise<Plain> | Plain;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function versionOf(request: Plain): string | undefined {
  const version = text(request['version']);
  return checkedVersion(version);
}

function checkedVersion(version: string | undefined): string | undefined {
  if (!version) return undefined;
  if (!/^\d+$/.test(version))
    throw new ServingFault(
      'invalid_argument',
      `failed to get model version from specified version string '${version}' (details: not a number), version should be an integral value > 0`,
    );
  return version;
}

function refuseRepositoryName(request: Plain): void {
  if (request['repository_name'])
    throw new ServingFault('unsupported', "'repository_name' specification is not supported");
}

function loadParameters(request: Plain): LoadParameters {
  const given = (request['parameters'] ?? {}) as Record<string, Plain>;
  return Object.fromEntries(Object.entries(given).map(([key, value]) => [key, Object.values(value)[0] as string]));
}

/** Every plain method: request and answer as snake_case values. */
function answersOf(host: ServingHost): Record<string, Answer> {
  const name = (request: Plain) => text(request['name']);
  return {
    ServerLive: () => ({ live: true }),
    ServerReady: () => ({ ready: host.server().ready }),
    ServerMetadata: () => {
      const { name: server, version, extensions } = host.server();
      return { name: server, version, extensions };
    },
    ModelReady: (request) => ({ ready: host.models.isReady(name(request), versionOf(request)) }),
    ModelMetadata: (request) => ({ ...host.models.metadata(name(request), versionOf(request)) }),
    ModelConfig: (request) => ({ config: host.models.config(name(request), versionOf(request)) }),
    ModelStatistics: (request) => {
      const stats = host.models.statistics(name(request) || undefined, versionOf(request));
      return { model_stats: stats.map(statisticsMessage) };
    },
    RepositoryIndex: async (request) => {
      refuseRepositoryName(request);
      return { models: await host.repository.index(request['ready'] === true) };
    },
    RepositoryModelLoad: async (request) => {
      refuseRepositoryName(request);
      await host.repository.load(text(request['model_name']), loadParameters(request));
      return {};
    },
    RepositoryModelUnload: async (request) => {
      refuseRepositoryName(request);
      await host.repository.unload(text(request['model_name']), loadParameters(request));
      return {};
    },
  };
}

async function inferAnswer(host: ServingHost, message: Buffer): Promise<InferResponse> {
  const request = decodeInferRequest(message);
  checkedVersion(request.modelVersion);
  for (const tensor of [...request.inputs, ...(request.outputs ?? [])])
    refuseSharedMemory(tensor.parameters, tensor.name);
  for (const { name, datatype } of request.inputs)
    if (!Object.hasOwn(elementBytes, datatype))
      throw new ServingFault('invalid_argument', `invalid datatype for input ${name}`);
  return host.models.infer(request);
}

/** Triton's gRPC service over a host; bind it with `bindGrpc`. */
export function createGrpcServing({ host, onFault }: GrpcServingOptions): grpc.Server {
  const server = new grpc.Server(channelOptions);
  const statusOf = (error: unknown): Partial<grpc.StatusObject> => {
    const fault = servingFaultOf(error);
    if (fault.cause !== undefined) onFault?.(fault.cause);
    return { code: grpcStatus[fault.serving], details: fault.message };
  };
  const service: Record<string, grpc.MethodDefinition<unknown, unknown>> = {};
  const handlers: Record<string, grpc.UntypedHandleCall> = {};
  for (const [method, answer] of Object.entries(answersOf(host))) {
    const { path, responseType, requestType } = typed(method);
    service[method] = {
      path,
      requestStream: false,
      responseStream: false,
      requestSerialize: (value) => value as Buffer,
      responseDeserialize: (value) => value,
      requestDeserialize: (bytes) => plainOf(requestType, requestType.decode(bytes)),
      responseSerialize: (value) => Buffer.from(responseType.encode(responseType.fromObject(value as Plain)).finish()),
    };
    handlers[method] = ((call: grpc.ServerUnaryCall<Plain, Plain>, done: grpc.sendUnaryData<Plain>) => {
      Promise.resolve()
        .then(() => answer(call.request))
        .then((value) => done(null, value))
        .catch((error) => done(statusOf(error)));
    }) as grpc.UntypedHandleCall;
  }
  addInference(service, handlers, host, statusOf);
  server.addService(service, handlers);
  addHealth(server, host);
  return server;
}

const typed = (method: string) => {
  const { path } = serviceMethods[method]!;
  return { path, requestType: messageType(`${method}Request`), responseType: messageType(`${method}Response`) };
};

/** The two methods of inference with the lean codec: bytes in, bytes out. */
function addInference(
  service: Record<string, grpc.MethodDefinition<unknown, unknown>>,
  handlers: Record<string, grpc.UntypedHandleCall>,
  host: ServingHost,
  statusOf: (error: unknown) => Partial<grpc.StatusObject>,
): void {
  const bytes = {
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
  service['ModelInfer'] = { ...serviceMethods['ModelInfer']!, ...bytes };
  handlers['ModelInfer'] = ((call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
    inferAnswer(host, call.request).then(
      (answer) => done(null, encodeInferResponse(answer)),
      (error) => done(statusOf(error)),
    );
  }) as grpc.UntypedHandleCall;
  service['ModelStreamInfer'] = { ...serviceMethods['ModelStreamInfer']!, ...bytes };
  handlers['ModelStreamInfer'] = ((call: grpc.ServerDuplexStream<Buffer, Buffer>) =>
    serveStream(call, host, statusOf)) as grpc.UntypedHandleCall;
}

const asIs = (value: unknown): Buffer => value as Buffer;
const streamType = messageType('ModelStreamInferResponse');

/** Answers come in any order, matched by id; a fault does not end the stream. */
function serveStream(
  call: grpc.ServerDuplexStream<Buffer, Buffer>,
  host: ServingHost,
  statusOf: (error: unknown) => Partial<grpc.StatusObject>,
): void {
  let open = 0;
  let ended = false;
  const finish = () => {
    if (ended && open === 0) call.end();
  };
  const fault = (message: Buffer, error: unknown) => {
    const { details } = statusOf(error);
    const id = idOf(message);
    call.write(Buffer.from(streamType.encode({ error_message: details, infer_response: { id } }).finish()));
  };
  call.on('data', (message: Buffer) => {
    open += 1;
    inferAnswer(host, message)
      .then((answer) => {
        const parameters = { ...answer.parameters, triton_final_response: true };
        call.write(wrapped(encodeInferResponse({ ...answer, parameters })));
      })
      .catch((error) => fault(message, error))
      .finally(() => {
        open -= 1;
        finish();
      });
  });
  call.on('end', () => {
    ended = true;
    finish();
  });
}

function idOf(message: Buffer): string {
  try {
    return decodeInferRequest(message).id ?? '';
  } catch {
    return '';
  }
}

/** `ModelStreamInferResponse` around an encoded answer. */
function wrapped(answer: Buffer): Buffer {
  const head = Buffer.from([0x12]);
  const length: number[] = [];
  for (let size = answer.length; ; size >>>= 7) {
    length.push(size > 0x7f ? (size & 0x7f) | 0x80 : size);
    if (size <= 0x7f) break;
  }
  return Buffer.concat([head, Buffer.from(length), answer]);
}

function addHealth(server: grpc.Server, host: ServingHost): void {
  const check = healthMethods['Check']!;
  const serialize = {
    ...check,
    responseSerialize: (value: unknown) => Buffer.from([8, (value as { status: number }).status]),
  };
  server.addService({ Check: serialize } as unknown as grpc.ServiceDefinition, {
    Check: ((_call: unknown, done: grpc.sendUnaryData<unknown>) =>
      done(null, { status: host.server().ready ? 1 : 2 })) as grpc.UntypedHandleCall,
  });
}

/** Binds to `host:port`; port 0 takes a free one. Resolves to the real port. */
export const bindGrpc = (server: grpc.Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.bindAsync(
      `${host.includes(':') ? `[${host}]` : host}:${port}`,
      grpc.ServerCredentials.createInsecure(),
      (error, bound) => (error ? reject(error) : resolve(bound)),
    );
  });

/** Lets calls under way finish, then ends the rest after `graceMs`. */
export const stopGrpc = (server: grpc.Server, graceMs: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => server.forceShutdown(), graceMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
