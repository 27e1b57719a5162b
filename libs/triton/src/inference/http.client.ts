import {
  decodeHttpResponse,
  encodeHttpRequest,
  httpFault,
  type InferRequest,
  type InferResponse,
} from '../wire/index.ts';
import type { Exchange } from './connection.ts';
import { ConnectionFault } from './connection-fault.ts';
import { ConnectionPool, type PoolLimits } from './connection-pool.ts';
import type { RawReply } from './reply-reader.ts';
import type { CallOptions, ForwardReply, ForwardRequest, InferenceServer, InferenceTransport } from './transport.ts';

const standardLimits: PoolLimits = { maxConnections: 512, idleMs: 30_000 };
const sweepEveryMs = 5_000;

/** Triton's HTTP protocol with binary tensors over own keep-alive connections: a fifth of the CPU that grpc-js takes. */
export class HttpTransport implements InferenceTransport {
  private readonly pools = new Map<string, ConnectionPool>();
  private readonly limits: PoolLimits;
  private readonly sweeper: NodeJS.Timeout;

  constructor(limits: Partial<PoolLimits> = {}) {
    this.limits = { ...standardLimits, ...limits };
    this.sweeper = setInterval(() => this.sweep(), sweepEveryMs).unref();
  }

  async infer(server: InferenceServer, request: InferRequest, options: CallOptions): Promise<InferResponse> {
    const body = encodeHttpRequest(request);
    const version = request.modelVersion ? `/versions/${request.modelVersion}` : '';
    const headers =
      `POST /v2/models/${request.modelName}${version}/infer HTTP/1.1\r\nHost: ${server.http}\r\n` +
      `Content-Type: application/octet-stream\r\nContent-Length: ${body.sizeBytes}\r\n` +
      `Inference-Header-Content-Length: ${body.headerLength}\r\n\r\n`;
    const tried = `infer of ${request.modelName} on ${server.http}`;
    const reply = await this.exchange(server, tried, headers, body.parts, body.sizeBytes, options);
    if (reply.head.status !== 200) throw httpFault(reply.head.status, reply.body.toString(), tried);
    return decodeHttpResponse(reply.body, reply.head.headerLength);
  }

  async forward(server: InferenceServer, request: ForwardRequest, options: CallOptions): Promise<ForwardReply> {
    let sizeBytes = 0;
    for (const part of request.body) sizeBytes += part.length;
    let headers = `${request.method} /v2/models/${request.model}${request.action} HTTP/1.1\r\nHost: ${server.http}\r\n`;
    for (const name in request.headers) headers += `${name}: ${request.headers[name]}\r\n`;
    headers += request.method === 'POST' ? `Content-Length: ${sizeBytes}\r\n\r\n` : '\r\n';
    const tried = `${request.action.slice(1) || 'metadata'} of ${request.model} on ${server.http}`;
    const { head, body } = await this.exchange(server, tried, headers, request.body, sizeBytes, options);
    if (head.status !== 200) throw httpFault(head.status, body.toString(), tried);
    return { contentType: head.contentType, headerLength: head.headerLength, body };
  }

  async close(): Promise<void> {
    clearInterval(this.sweeper);
    for (const pool of this.pools.values()) pool.destroy();
    this.pools.clear();
  }

  private async exchange(
    server: InferenceServer,
    tried: string,
    headers: string,
    body: readonly Uint8Array[],
    bodyBytes: number,
    options: CallOptions,
  ): Promise<RawReply> {
    const head = Buffer.from(headers, 'latin1');
    const exchange: Exchange = { tried, parts: [head, ...body], sizeBytes: head.length + bodyBytes, options };
    return this.poolOf(server.http, tried).send(exchange);
  }

  private poolOf(address: string, tried: string): ConnectionPool {
    let pool = this.pools.get(address);
    if (!pool) {
      if (!/^.+:[0-9]{1,5}$/.test(address))
        throw new ConnectionFault('nothing', tried, `'${address}' is not host:port`);
      pool = new ConnectionPool(address, this.limits);
      this.pools.set(address, pool);
    }
    return pool;
  }

  private sweep(): void {
    const now = Date.now();
    for (const [address, pool] of this.pools) {
      pool.sweep(now);
      if (pool.isEmpty) this.pools.delete(address);
    }
  }
}
