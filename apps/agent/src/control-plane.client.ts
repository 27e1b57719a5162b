import {
  AppError,
  type BlobUrls,
  blobUrls,
  type DesiredAnswer,
  desiredAnswer,
  documentSchema,
  type Enrol,
  type Enrolled,
  type ErrorCode,
  enrolled,
  errorCodes,
  innerMessage,
  type ObservedAnswer,
  type ObservedReport,
  observedAnswer,
  parseWith,
} from '@perch/contracts';
import { Agent, request } from 'undici';

interface Call {
  method: 'GET' | 'POST' | 'PUT';
  path: string;
  bearer: string;
  body?: unknown;
  timeoutMs: number;
  signal?: AbortSignal;
}

const callTimeoutMs = 10_000;
const pollSeconds = 20;

/** The control plane's internal API as a server's agent uses it. Failures carry the control plane's own code and words. */
export class ControlPlaneClient {
  private readonly base: string;
  private readonly agent = new Agent({ connect: { timeout: 5_000 }, keepAliveTimeout: 30_000 });

  constructor(controlUrl: string) {
    this.base = controlUrl.replace(/\/+$/, '');
  }

  async enrol(joinKey: string, body: Enrol): Promise<Enrolled> {
    const { value } = await this.call({
      method: 'POST',
      path: 'enrol',
      bearer: joinKey,
      body,
      timeoutMs: callTimeoutMs,
    });
    return parseWith(enrolled, value, 'answer to the enrolment');
  }

  /** The long poll; undefined: nothing new within its time. Without `follow` the whole document, as soon as there is one. */
  async desired(
    who: { id: string; token: string },
    follow: { after: number; lineage: string; holds: number } | undefined,
    signal: AbortSignal,
  ): Promise<DesiredAnswer | undefined> {
    const query = new URLSearchParams({ wait: String(pollSeconds), schema: String(documentSchema) });
    if (follow) {
      query.set('holds', String(follow.holds));
      query.set('after', String(follow.after));
      query.set('lineage', follow.lineage);
    }
    const path = `servers/${who.id}/desired?${query}`;
    const timeoutMs = (pollSeconds + 10) * 1_000;
    const { status, value } = await this.call({ method: 'GET', path, bearer: who.token, timeoutMs, signal });
    return status === 304 ? undefined : parseWith(desiredAnswer, value, 'desired document');
  }

  /** What the control plane says to a report; an older one says less. */
  async report(
    who: { id: string; token: string },
    body: ObservedReport,
    signal?: AbortSignal,
  ): Promise<ObservedAnswer> {
    const path = `servers/${who.id}/observed`;
    const { value } = await this.call({
      method: 'PUT',
      path,
      bearer: who.token,
      body,
      timeoutMs: callTimeoutMs,
      signal,
    });
    return parseWith(observedAnswer, value ?? { needReport: false }, 'answer to the report');
  }

  /** `peers`: with addresses in neighbours' caches. */
  async blobUrls(token: string, hashes: readonly string[], peers: boolean): Promise<BlobUrls['urls']> {
    const call: Call = {
      method: 'POST',
      path: 'blobs/urls',
      bearer: token,
      body: { hashes, ...(peers ? { peers } : {}) },
      timeoutMs: callTimeoutMs,
    };
    return parseWith(blobUrls, (await this.call(call)).value, 'addresses of blobs').urls;
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }

  private async call({
    method,
    path,
    bearer,
    body,
    timeoutMs,
    signal,
  }: Call): Promise<{ status: number; value: unknown }> {
    const tried = `${method} ${path.replace(/\?.*/, '')} at ${this.base}`;
    try {
      const limit = AbortSignal.timeout(timeoutMs);
      const { statusCode, body: reply } = await request(`${this.base}/internal/v1/${path}`, {
        dispatcher: this.agent,
        method,
        headers: {
          authorization: `Bearer ${bearer}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        headersTimeout: timeoutMs,
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      const text = await reply.text();
      if (statusCode === 304 || statusCode === 204) return { status: statusCode, value: undefined };
      if (statusCode >= 200 && statusCode < 300)
        return { status: statusCode, value: text ? JSON.parse(text) : undefined };
      throw faultOf(statusCode, text, tried);
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (signal?.aborted) throw new AppError('cancelled', `${tried}: called off`);
      throw new AppError('unavailable', `${tried}: ${innerMessage(error)}`, { cause: error });
    }
  }
}

const codeOfStatus: Record<number, ErrorCode> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
};

function faultOf(status: number, text: string, tried: string): AppError {
  let words = `status ${status}`;
  let code = codeOfStatus[status] ?? 'unavailable';
  try {
    const { detail, code: theirs } = JSON.parse(text) as { detail?: unknown; code?: ErrorCode };
    if (typeof detail === 'string') words = detail;
    if (theirs && errorCodes.includes(theirs)) code = theirs;
  } catch {
    // no problem document: some proxy's page, of no use to anybody
  }
  return new AppError(status === 401 ? 'unauthenticated' : code, `${tried}: ${words}`);
}
