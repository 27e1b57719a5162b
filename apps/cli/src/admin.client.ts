import { randomUUID } from 'node:crypto';
import { get as httpGet } from 'node:http';
import { get as httpsGet } from 'node:https';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError, type ErrorCode, errorCodes, type Page, type Problem } from '@perch/contracts';
import { Agent, type Dispatcher, request } from 'undici';

export interface Target {
  url: string;
  routerUrl?: string | undefined;
  apiKey?: string | undefined;
}

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  body?: unknown;
  /** Generation that the caller saw. */
  ifMatch?: number;
  timeoutMs?: number;
  /** Never sent a second time: a secret in the answer cannot be given twice. */
  once?: boolean;
}

export interface RawAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

const retriedCodes = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const refusedCodes = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
const tries = 3;

/** The CLI's only HTTP client: the admin API, signed URLs of the artifact store, and the router. */
export class AdminClient {
  private readonly connections = new Agent({ connect: { timeout: 10_000 }, keepAliveTimeout: 4_000 });

  constructor(readonly target: Target) {}

  async close(): Promise<void> {
    await this.connections.destroy();
  }

  /**
   * Calls `/api/v1<path>` and returns the JSON body. Lost connections and 503 are tried again where that is safe: reads,
   * and creates (which carry an Idempotency-Key). Throws the server's own code and words, `unavailable` when nobody
   * answers, `timeout` after `timeoutMs` (default 30 s).
   */
  async call<T>(path: string, call: Call = {}): Promise<T> {
    const { method = 'GET', query, body, ifMatch, timeoutMs = 30_000, once = false } = call;
    const headers: Record<string, string> = { accept: 'application/json' };
    if (this.target.apiKey) headers['authorization'] = `Bearer ${this.target.apiKey}`;
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (ifMatch !== undefined) headers['if-match'] = `"${ifMatch}"`;
    if (method === 'POST' && !once) headers['idempotency-key'] = randomUUID();
    const url = `${this.target.url}/api/v1${path}${queryText(query)}`;
    const text = body === undefined ? undefined : JSON.stringify(body);
    for (let attempt = 1; ; attempt += 1) {
      const again =
        !once &&
        attempt < tries &&
        (method === 'GET' || method === 'POST' || (method === 'PUT' && ifMatch === undefined));
      try {
        const answer = await this.exchange(url, method, headers, text, timeoutMs);
        if (answer.status !== 503 || !again) return readAnswer<T>(answer, this.target.url);
        await pause(retryAfterMs(answer, attempt));
      } catch (error) {
        if (!again || !(error instanceof AppError) || error.details?.['lost'] !== true) throw error;
        await pause(200 * attempt);
      }
    }
  }

  /** All pages of a list. */
  async list<T>(path: string, query: Call['query'] = {}): Promise<T[]> {
    const items: T[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.call<Page<T> | T[]>(path, { query: { ...query, cursor } });
      if (Array.isArray(page)) return page;
      items.push(...page.items);
      cursor = page.nextCursor ?? undefined;
    } while (cursor);
    return items;
  }

  /** Like `call`, and undefined when the thing does not exist. */
  async find<T>(path: string): Promise<T | undefined> {
    return this.call<T>(path).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'not_found') return undefined;
      throw error;
    });
  }

  /** One request on the router; the answer as it is, whatever its status. */
  async serve(path: string, body: string | Buffer, headers: Record<string, string>, timeoutMs: number) {
    return this.onRouter(path, 'POST', headers, body, timeoutMs);
  }

  /** Something to be read of the router. */
  readServing(path: string, timeoutMs: number): Promise<RawAnswer> {
    return this.onRouter(path, 'GET', {}, undefined, timeoutMs);
  }

  private async onRouter(
    path: string,
    method: 'GET' | 'POST',
    headers: Record<string, string>,
    body: string | Buffer | undefined,
    timeoutMs: number,
  ): Promise<RawAnswer> {
    const base = this.target.routerUrl;
    if (!base)
      throw new AppError(
        'invalid',
        'this context knows no router: give --router URL, set PERCH_ROUTER_URL, or save it with perch login --router URL',
      );
    const key = this.target.apiKey;
    const all = { ...(key ? { authorization: `Bearer ${key}` } : {}), ...headers };
    return this.exchange(`${base}${path}`, method, all, body, timeoutMs);
  }

  /** Whether the context's router would serve the endpoint now; undefined: the context names none, or it does not answer. */
  async routerServes(endpoint: string): Promise<boolean | undefined> {
    const { routerUrl, apiKey } = this.target;
    if (!routerUrl) return undefined;
    const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
    const url = `${routerUrl}/v2/models/${encodeURIComponent(endpoint)}/ready`;
    const answer = await this.exchange(url, 'GET', headers, undefined, 2_000).catch(() => undefined);
    if (!answer || [401, 403].includes(answer.status)) return undefined;
    return answer.status === 200;
  }

  /** Any URL, read whole (health pages, metrics). */
  probe(url: string, timeoutMs = 5_000): Promise<RawAnswer> {
    return this.exchange(url, 'GET', {}, undefined, timeoutMs);
  }

  /** Sends bytes to a signed URL. Returns the status; the caller judges it. */
  async send(url: string, headers: Record<string, string>, body: Readable | Buffer, sizeBytes: number) {
    return this.exchange(url, 'PUT', { ...headers, 'content-length': String(sizeBytes) }, body, 15 * 60_000);
  }

  /**
   * Reads a signed URL; the caller consumes the stream. By Node's own client: undici 7.30 throws outside of any promise
   * when a store closes the connection while the reader is slower than the network.
   */
  fetchBytes(url: string): Promise<{ status: number; body: Readable }> {
    return new Promise((done, fail) => {
      const get = url.startsWith('https:') ? httpsGet : httpGet;
      const asked = get(url, (answer) => done({ status: answer.statusCode ?? 0, body: answer }));
      asked.setTimeout(60_000, () => asked.destroy(new AppError('timeout', `${hostOf(url)} sent nothing for 60 s`)));
      asked.once('error', (error) => fail(error instanceof AppError ? error : connectionFault(error, url)));
    });
  }

  private async exchange(
    url: string,
    method: Dispatcher.HttpMethod,
    headers: Record<string, string>,
    body: string | Buffer | Readable | undefined,
    timeoutMs: number,
  ): Promise<RawAnswer> {
    try {
      const answer = await request(url, {
        dispatcher: this.connections,
        method,
        headers,
        body: body ?? null,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal: AbortSignal.timeout(timeoutMs),
      });
      const bytes = Buffer.from(await answer.body.arrayBuffer());
      return { status: answer.statusCode, headers: answer.headers as Record<string, string>, body: bytes };
    } catch (error) {
      throw connectionFault(error, url, timeoutMs);
    }
  }
}

function queryText(query: Call['query'] = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return text && `?${text}`;
}

const retryAfterMs = (answer: RawAnswer, attempt: number): number => {
  const seconds = Number(answer.headers['retry-after']);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1_000, 5_000) : 300 * attempt;
};

function readAnswer<T>(answer: RawAnswer, url: string): T {
  const type = String(answer.headers['content-type'] ?? '');
  const text = answer.body.toString('utf8');
  if (answer.status >= 200 && answer.status < 300) {
    if (text === '') return undefined as T;
    if (type.includes('json')) return JSON.parse(text) as T;
    throw new AppError(
      'unavailable',
      `${url} answered ${type || 'something else'} and not JSON: is it a control plane?`,
    );
  }
  if (!type.includes('json'))
    throw new AppError(
      codeOfStatus(answer.status),
      `${url} answered ${answer.status} without a reason: is it a control plane?`,
    );
  throw problemError(JSON.parse(text) as Partial<Problem>, answer.status);
}

function problemError(problem: Partial<Problem>, status: number): AppError {
  const known = errorCodes.find((code) => code === problem.code);
  const id = problem.requestId && known === 'internal' ? ` (request ${problem.requestId})` : '';
  return new AppError(known ?? codeOfStatus(status), `${problem.detail ?? problem.title ?? `status ${status}`}${id}`, {
    details: { ...problem.details, ...(problem.errors ? { errors: problem.errors } : {}) },
  });
}

function codeOfStatus(status: number): ErrorCode {
  const table: Record<number, ErrorCode> = {
    400: 'invalid', 401: 'unauthenticated', 403: 'forbidden', 404: 'not_found', 409: 'conflict', 412: 'precondition_failed',
    413: 'too_large', 429: 'rate_limited', 501: 'not_available_yet', 502: 'upstream', 503: 'unavailable', 504: 'timeout',
  }; // biome-ignore format: one table
  return table[status] ?? (status < 500 ? 'invalid' : 'internal');
}

const hostOf = (url: string): string => {
  try {
    return new URL(url).origin;
  } catch {
    return url;
  }
};

function connectionFault(error: unknown, url: string, timeoutMs?: number): AppError {
  const { code, name, message } = (error ?? {}) as { code?: string; name?: string; message?: string };
  const host = hostOf(url);
  if (name === 'TimeoutError' || code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT')
    return new AppError('timeout', `${host} did not answer within ${timeoutMs ?? 60_000} ms`, { cause: error });
  if (name === 'TypeError' && /invalid url/i.test(message ?? ''))
    return new AppError('invalid', `"${url}" is not an address such as http://127.0.0.1:8080`, { cause: error });
  const lost = retriedCodes.has(code ?? '');
  const advice = refusedCodes.has(code ?? '') ? '; is it running? (perch up starts everything on this machine)' : '';
  return new AppError('unavailable', `cannot reach ${host}: ${code ?? message}${advice}`, {
    cause: error,
    details: { lost: lost || code === 'ECONNREFUSED' },
  });
}
