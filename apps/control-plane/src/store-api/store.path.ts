import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { AppError, type ErrorCode, errorCodeOf, shownMessage } from '@perch/contracts';
import { LOGGER, type Logger } from '@perch/platform';
import { ARTIFACT_STORE, type ArtifactStore, FolderStore, storePath } from '@perch/registry';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { byteRange } from './range.ts';

const drainMs = 5_000;

type Query = Record<string, string | undefined>;

/** What an S3 server would answer; clients judge by the status alone. */
const statuses: Partial<Record<ErrorCode, number>> = {
  invalid: 400,
  integrity: 400,
  too_large: 400,
  cancelled: 400,
  forbidden: 403,
  not_found: 404,
  precondition_failed: 412,
  no_space: 507,
};

/** Serves the signed URLs of the folder store: no keys, no JSON, only what each URL was signed for. With S3 it serves nothing. */
@Injectable()
export class StorePath implements OnModuleInit {
  constructor(
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly adapter: HttpAdapterHost,
  ) {}

  async onModuleInit(): Promise<void> {
    const { store } = this;
    if (!(store instanceof FolderStore)) return;
    const fastify: FastifyInstance = this.adapter.httpAdapter.getInstance();
    await fastify.register(async (scope) => {
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload)); // bodies stream, whole or not
      scope.put<{ Params: { '*': string }; Querystring: Query }>(`${storePath}*`, (request, reply) =>
        this.answer(request, reply, () => put(store, request, reply)),
      );
      scope.get<{ Params: { '*': string }; Querystring: Query }>(
        `${storePath}*`,
        { exposeHeadRoute: false },
        (request, reply) => this.answer(request, reply, () => get(store, request, reply)),
      );
    });
  }

  private async answer(request: FastifyRequest, reply: FastifyReply, work: () => Promise<unknown>): Promise<unknown> {
    try {
      return await work();
    } catch (error) {
      const code = errorCodeOf(error);
      if (code === 'internal') this.logger.error('signed URL failed', { requestId: request.id, error });
      if (request.method === 'PUT') await drain(request.raw);
      return reply
        .code(statuses[code] ?? 500)
        .type('text/plain; charset=utf-8')
        .send(shownMessage(error));
    }
  }
}

/** A sender that is cut off while it writes sees a reset instead of the status, so most of what it sends is let in first. */
async function drain(body: IncomingMessage): Promise<void> {
  body.unpipe();
  body.resume();
  await finished(body, { signal: AbortSignal.timeout(drainMs) }).catch(() => undefined);
}

type StoreRequest = FastifyRequest<{ Params: { '*': string }; Querystring: Query }>;

async function put(store: FolderStore, request: StoreRequest, reply: FastifyReply): Promise<unknown> {
  const { headers } = request;
  const grant = await store.grant('PUT', request.params['*'], request.query);
  const checksum = grant.sha256 && Buffer.from(grant.sha256, 'hex').toString('base64');
  if (checksum && headers['x-amz-checksum-sha256'] !== checksum)
    throw new AppError('forbidden', 'signed URL: wants the header x-amz-checksum-sha256 that came with it');
  if (headers['content-length'] !== String(grant.sizeBytes))
    throw new AppError('forbidden', `signed URL: wants a body of exactly ${grant.sizeBytes} bytes (Content-Length)`);
  const body = (request.body as IncomingMessage | undefined) ?? request.raw;
  const etag = await store.receive(grant, body, headers['if-none-match'] === '*');
  return reply.code(200).header('etag', `"${etag}"`).send();
}

async function get(store: FolderStore, request: StoreRequest, reply: FastifyReply): Promise<unknown> {
  const grant = await store.grant('GET', request.params['*'], request.query);
  const found = await store.head(grant.key);
  if (!found) throw new AppError('not_found', 'signed URL: the object is not in the store');
  const range = byteRange(request.headers.range, found.sizeBytes);
  reply.header('accept-ranges', 'bytes').type('application/octet-stream');
  if (found.sha256) reply.header('etag', `"${found.sha256}"`);
  if (range === 'outside')
    return reply
      .code(416)
      .header('content-range', `bytes */${found.sizeBytes}`)
      .send('the range lies outside of the object');
  if (!range) return reply.header('content-length', found.sizeBytes).send(await store.read(grant.key));
  reply.code(206).header('content-range', `bytes ${range.first}-${range.last}/${found.sizeBytes}`);
  return reply.header('content-length', range.last - range.first + 1).send(await store.read(grant.key, range));
}
