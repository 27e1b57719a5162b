import {
  callUnary,
  grpcFault,
  type InferRequest,
  type InferResponse,
  inferMethod,
  openChannel,
  TritonFault,
} from '../wire/index.ts';
import { ConnectionFault } from './connection-fault.ts';
import { HttpTransport } from './http.client.ts';
import type { CallOptions, ForwardReply, ForwardRequest, InferenceServer, InferenceTransport } from './transport.ts';

type Channel = ReturnType<typeof openChannel>;

/** Words of grpc-js for a call that never left this machine. */
const neverSent = /No connection established|ECONNREFUSED|EHOSTUNREACH|Name resolution failed|Failed to connect/;

/** `ModelInfer` over grpc-js. Bodies of `/v2` are HTTP's own and go on to the server's HTTP port as they stand. */
export class GrpcTransport implements InferenceTransport {
  private readonly channels = new Map<string, Channel>();
  private readonly http = new HttpTransport();

  async infer(server: InferenceServer, request: InferRequest, options: CallOptions): Promise<InferResponse> {
    const tried = `infer of ${request.modelName} on ${server.grpc}`;
    const { timeoutMs, cancellation } = options;
    const controller = new AbortController();
    if (cancellation?.cancelled) controller.abort();
    else if (cancellation) cancellation.onCancel = () => controller.abort();
    try {
      const { signal } = controller;
      return await callUnary(this.channelOf(server.grpc), inferMethod, request, { timeoutMs, signal });
    } catch (error) {
      throw this.faultOf(error, tried);
    } finally {
      if (cancellation) cancellation.onCancel = undefined;
    }
  }

  forward(server: InferenceServer, request: ForwardRequest, options: CallOptions): Promise<ForwardReply> {
    return this.http.forward(server, request, options);
  }

  async close(): Promise<void> {
    for (const channel of this.channels.values()) channel.close();
    this.channels.clear();
    await this.http.close();
  }

  private faultOf(error: unknown, tried: string): TritonFault {
    const fault = grpcFault(error, tried);
    if (fault.kind !== 'connection') return fault;
    return new ConnectionFault(neverSent.test(fault.text) ? 'nothing' : 'sent', tried, fault.text, error);
  }

  private channelOf(address: string): Channel {
    let channel = this.channels.get(address);
    if (!channel) {
      channel = openChannel(address);
      this.channels.set(address, channel);
    }
    return channel;
  }
}
