import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { HttpExchange, HttpReply } from './http1/index.ts';
import type { OtherPaths } from './router-application.ts';

type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** The body is handed over whole, so its framing is no longer that of the wire. */
const framing = new Set(['transfer-encoding', 'content-length', 'expect', 'connection']);

/** Health, metrics and whatever else the Nest application answers: handed to it in this process, without a second port. */
export class NestPaths implements OtherPaths {
  private app: NestFastifyApplication | undefined;

  use(app: NestFastifyApplication): void {
    this.app = app;
  }

  async answer({ head, body }: HttpExchange): Promise<HttpReply> {
    const fastify = this.app!.getHttpAdapter().getInstance();
    const url = head.query ? `${head.path}?${head.query}` : head.path;
    const headers: Record<string, string> = {};
    for (const name in head.headers) if (!framing.has(name)) headers[name] = head.headers[name]!;
    const method = head.method as Method;
    const answer = await fastify.inject({
      method,
      url,
      headers,
      payload: body.length ? Buffer.concat(body) : undefined,
    });
    return {
      status: answer.statusCode,
      contentType: String(answer.headers['content-type'] ?? ''),
      headerLines: '',
      body: [answer.rawPayload],
    };
  }
}
