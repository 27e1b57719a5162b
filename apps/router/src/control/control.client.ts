import {
  AppError, type BlobUrls, blobUrls, documentSchema, type Enrolled, enrolled, parseWith, type RouterReport, reportAnswer,
} from '@perch/contracts'; // biome-ignore format: one list
import { Agent, request } from 'undici';
import type { Identity } from './identity.store.ts';

/** Longest the control plane lets a poll wait, in seconds. */
const pollSeconds = 25;
const callTimeoutMs = 10_000;
const maxTableBytes = 256 * 1024 * 1024;

interface Answer {
  status: number;
  body: Buffer;
}

/** The control plane's internal API, as a router uses it. Every call has a time limit; failures are `unavailable`. */
export class ControlClient {
  private readonly base: string;
  private readonly agent = new Agent({ connections: 4, connectTimeout: 5_000, bodyTimeout: 60_000 });

  constructor(base: string) {
    this.base = base;
  }

  async enrol(joinKey: string, name: string, previousLineage: string | null): Promise<Enrolled> {
    const body = { kind: 'router', name, previousLineage };
    const answer = await this.call('POST', '/internal/v1/enrol', joinKey, body, callTimeoutMs);
    return this.read(answer, enrolled, 'enrolment');
  }

  /** The answer's bytes, or undefined when there is nothing new. Throws `unauthenticated` when the token is not known. */
  async pollTable(
    token: string,
    after: { revision: number; lineage: string; schema: number } | undefined,
    signal: AbortSignal,
  ): Promise<Buffer | undefined> {
    const query = after
      ? `after=${after.revision}&lineage=${after.lineage}&holds=${after.schema}&wait=${pollSeconds}`
      : 'wait=0';
    const path = `/internal/v1/routing-table?schema=${documentSchema}&${query}`;
    const answer = await this.call('GET', path, token, undefined, (pollSeconds + 10) * 1_000, signal);
    if (answer.status === 304 || answer.status === 204) return undefined;
    this.expectOk(answer, 'routing table');
    return answer.body;
  }

  async report({ id, token }: Identity, report: RouterReport): Promise<{ needReport: boolean }> {
    const path = `/internal/v1/routers/${encodeURIComponent(id)}/report`;
    const answer = await this.call('PUT', path, token, report, callTimeoutMs);
    return this.read(answer, reportAnswer, 'report');
  }

  async blobUrls(token: string, hashes: string[]): Promise<BlobUrls> {
    const answer = await this.call('POST', '/internal/v1/blobs/urls', token, { hashes }, callTimeoutMs);
    return this.read(answer, blobUrls, 'blob URLs');
  }

  /** The bytes at a signed URL, which may be relative to the control plane. Throws `forbidden` when it has expired. */
  async download(url: string, sizeBytes: number): Promise<Buffer> {
    const target = new URL(url, `${this.base}/`);
    const timeoutMs = 30_000 + sizeBytes / 1_000;
    const answer = await this.send('GET', target, {}, undefined, timeoutMs, sizeBytes);
    if (answer.status === 403) throw new AppError('forbidden', 'the URL of the file has expired');
    this.expectOk(answer, 'file');
    return answer.body;
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }

  private call(
    method: 'GET' | 'POST' | 'PUT',
    path: string,
    secret: string,
    body: unknown,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const headers: Record<string, string> = { authorization: `Bearer ${secret}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    const text = body === undefined ? undefined : JSON.stringify(body);
    return this.send(method, new URL(this.base + path), headers, text, timeoutMs, maxTableBytes, signal);
  }

  private async send(
    method: 'GET' | 'POST' | 'PUT',
    url: URL,
    headers: Record<string, string>,
    body: string | undefined,
    timeoutMs: number,
    maxBytes: number,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const limit = AbortSignal.timeout(Math.ceil(timeoutMs));
    try {
      const options = { method, headers, body, dispatcher: this.agent, headersTimeout: timeoutMs };
      const answer = await request(url, { ...options, signal: signal ? AbortSignal.any([signal, limit]) : limit });
      const pieces: Buffer[] = [];
      let size = 0;
      for await (const piece of answer.body) {
        size += (piece as Buffer).length;
        if (size > maxBytes)
          throw new AppError('upstream', `the answer of ${url.pathname} is larger than ${maxBytes} bytes`);
        pieces.push(piece as Buffer);
      }
      return { status: answer.statusCode, body: Buffer.concat(pieces) };
    } catch (cause) {
      if (cause instanceof AppError) throw cause;
      throw new AppError('unavailable', `${url.origin} does not answer: ${(cause as Error).message}`, { cause });
    }
  }

  private expectOk({ status, body }: Answer, thing: string): void {
    if (status >= 200 && status < 300) return;
    if (status === 401)
      throw new AppError('unauthenticated', `${thing}: the control plane does not know this router's token`);
    throw new AppError(
      'unavailable',
      `${thing}: the control plane answered ${status}: ${body.toString('utf8', 0, 300)}`,
    );
  }

  private read<T extends Parameters<typeof parseWith>[0]>(answer: Answer, schema: T, thing: string) {
    this.expectOk(answer, thing);
    let value: unknown;
    try {
      value = JSON.parse(answer.body.toString());
    } catch (cause) {
      throw new AppError('upstream', `${thing}: the control plane's answer is not JSON`, { cause });
    }
    return parseWith(schema, value, thing);
  }
}
