import { createReadStream } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { readPeerUrl, sha256Hex } from '@perch/contracts';
import { LOGGER, type Logger } from '@perch/platform';
import { BlobCache } from '@perch/sync';
import { type AgentConfig, CONFIG } from './agent.config.ts';
import { SessionService } from './session.service.ts';

/** Requests at once; more are sent to the store. */
const mostAtOnce = 8;
const silenceMs = 10_000;

/** First and last byte of `bytes=a-b`; undefined: the whole. */
export function peerRange(header: string | undefined, sizeBytes: number): { from: number; to: number } | 'outside' {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(header ?? '') ?? [];
  if (first === undefined) return { from: 0, to: sizeBytes - 1 };
  const to = last ? Math.min(Number(last), sizeBytes - 1) : sizeBytes - 1;
  return Number(first) > to ? 'outside' : { from: Number(first), to };
}

/** Lets neighbours read blobs of our cache by addresses that the control plane signed; PERCH_PEERS only. */
@Injectable()
export class PeerServer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private server: Server | undefined;
  private reading = 0;

  constructor(
    @Inject(CONFIG) private readonly config: AgentConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly session: SessionService,
    private readonly cache: BlobCache,
  ) {}

  /** Where neighbours reach it; undefined: they do not. */
  get address(): string | undefined {
    const { PERCH_PEER_ADVERTISE: advertised, PERCH_PEER_LISTEN: at } = this.config;
    if (!this.server?.listening) return undefined;
    const { port } = this.server.address() as AddressInfo;
    return `http://${advertised ?? `${at.host.includes(':') ? `[${at.host}]` : at.host}:${port}`}`;
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.config.PERCH_PEERS) return;
    const { host, port } = this.config.PERCH_PEER_LISTEN;
    const server = createServer((request, response) => void this.answer(request, response));
    server.setTimeout(silenceMs);
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
    this.server = server;
    this.logger.info('neighbours may read the cache', { peer: this.address });
  }

  async beforeApplicationShutdown(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    server?.closeAllConnections();
    await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const token = await this.session.token();
    const hash = token && request.method === 'GET' && readPeerUrl(request.url ?? '', sha256Hex(token), Date.now());
    if (!hash) return refuse(response, 403);
    const proven = this.cache.store.provenFile(hash);
    if (!proven) return refuse(response, 404);
    if (this.reading >= mostAtOnce) return refuse(response, 503);
    const range = peerRange(request.headers.range, proven.size);
    if (range === 'outside') return refuse(response, 416);
    this.reading += 1;
    response.once('close', () => {
      this.reading -= 1;
    });
    const { from, to } = range;
    response.writeHead(request.headers.range === undefined ? 200 : 206, {
      'content-length': to - from + 1,
      'content-range': `bytes ${from}-${to}/${proven.size}`,
    });
    if (proven.size === 0) return void response.end();
    const file = createReadStream(this.cache.store.pathOf(hash), { start: from, end: to, highWaterMark: 1024 ** 2 });
    file.once('error', () => response.destroy());
    response.once('close', () => file.destroy());
    file.pipe(response);
  }
}

const refuse = (response: ServerResponse, status: number): void => void response.writeHead(status).end();
