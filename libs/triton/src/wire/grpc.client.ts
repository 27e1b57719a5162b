import * as grpc from '@grpc/grpc-js';
import type protobuf from 'protobufjs';
import type { InferRequest, InferResponse } from './infer.ts';
import { decodeInferResponse, encodeInferRequest } from './infer-message.ts';
import { protocol } from './messages.ts';

export type Method<Request, Response> = grpc.MethodDefinition<Request, Response>;
type PlainMethod = Method<object, protobuf.Message>;

function methodOf(service: protobuf.Service, method: protobuf.Method): PlainMethod {
  const request = protocol.lookupType(`${service.parent!.fullName.slice(1)}.${method.requestType}`);
  const response = protocol.lookupType(`${service.parent!.fullName.slice(1)}.${method.responseType}`);
  return {
    path: `/${service.fullName.slice(1)}/${method.name}`,
    requestStream: method.requestStream ?? false,
    responseStream: method.responseStream ?? false,
    requestSerialize: (value) =>
      Buffer.from(request.encode(request.fromObject(value as Record<string, unknown>)).finish()),
    requestDeserialize: (bytes) => request.decode(bytes),
    responseSerialize: (value) => Buffer.from(response.encode(value).finish()),
    responseDeserialize: (bytes) => response.decode(bytes),
  };
}

function methodsOf(fullName: string): Record<string, PlainMethod> {
  const service = protocol.lookupService(fullName);
  return Object.fromEntries(service.methodsArray.map((method) => [method.name, methodOf(service, method)]));
}

/** Every method of Triton's service by its name, with snake_case plain messages. */
export const serviceMethods = methodsOf('inference.GRPCInferenceService');
export const healthMethods = methodsOf('grpc.health.v1.Health');

/** `ModelInfer` with the lean codec. */
export const inferMethod: Method<InferRequest, InferResponse> = {
  path: '/inference.GRPCInferenceService/ModelInfer',
  requestStream: false,
  responseStream: false,
  requestSerialize: encodeInferRequest,
  requestDeserialize: () => {
    throw new Error('the client does not read requests');
  },
  responseSerialize: () => {
    throw new Error('the client does not write responses');
  },
  responseDeserialize: decodeInferResponse,
};

const maxMessageBytes = 2_147_483_647;

/** Options every channel to or from Triton wants: no retries behind our back, no 4 MiB limit. */
export const channelOptions: grpc.ChannelOptions = {
  'grpc.enable_retries': 0,
  'grpc.max_receive_message_length': maxMessageBytes,
  'grpc.max_send_message_length': maxMessageBytes,
  'grpc.use_local_subchannel_pool': 1,
  // A server that comes back is seen within a second, not within grpc-js's two minutes.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
};

/** A channel to one Triton; connects on first use. `address` is `host:port`. */
export const openChannel = (address: string, options: grpc.ChannelOptions = {}): grpc.Client =>
  new grpc.Client(address, grpc.credentials.createInsecure(), { ...channelOptions, ...options });

/** What a server started with `--grpc-restricted-protocol` wants to see. */
export function restrictedMetadata(headers: Readonly<Record<string, string>>): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [key, value] of Object.entries(headers)) metadata.set(`triton-grpc-protocol-${key}`, value);
  return metadata;
}

export interface UnaryOptions {
  /** Milliseconds from now. */
  timeoutMs: number;
  metadata?: grpc.Metadata;
  /** Cancels the call; the promise then rejects with code CANCELLED. */
  signal?: AbortSignal;
}

/** One unary call with a deadline; rejects with grpc-js's `ServiceError` (see `grpcFault` for our words). */
export function callUnary<Request, Response>(
  client: grpc.Client,
  method: Method<Request, Response>,
  request: Request,
  options: UnaryOptions,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      options.metadata ?? new grpc.Metadata(),
      { deadline: Date.now() + options.timeoutMs },
      (error, response) => {
        options.signal?.removeEventListener('abort', cancel);
        if (error) reject(error);
        else resolve(response!);
      },
    );
    const cancel = () => call.cancel();
    if (options.signal?.aborted) cancel();
    else options.signal?.addEventListener('abort', cancel, { once: true });
  });
}
