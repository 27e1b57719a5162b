import { createHash } from 'node:crypto';
import type { CreateVersion, Endpoint, EndpointSpecInput, Server, Version, VersionUpload } from '@perch/contracts';

export interface Answer<T> {
  status: number;
  body: T;
  headers: Headers;
}

/** Where a user's programs find everything. */
export interface AdminTarget {
  adminKey: string;
  controlPlane: { address: string };
  router: { address: string };
  logs(): Promise<string>;
}

/** What a user's programs send: plain HTTP to the admin API and the router. */
export class Admin {
  constructor(
    readonly stack: AdminTarget,
    readonly key = stack.adminKey,
    /** Of each call. */
    readonly timeoutMs = 30_000,
  ) {}

  async call<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const response = await fetch(`${this.stack.controlPlane.address}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(this.timeoutMs),
    });
    const text = await response.text();
    return { status: response.status, body: (text ? JSON.parse(text) : undefined) as T, headers: response.headers };
  }

  /** Like `call`, and throws with the problem's words unless the status is 2xx. */
  async must<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.call<T>(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Creates a version, sends its missing blobs (single PUTs: test models are small), completes and perhaps publishes it. */
  async upload(
    model: string,
    files: Record<string, Uint8Array>,
    options: { publish?: boolean; tags?: string[]; uses?: CreateVersion['uses'] } = {},
  ): Promise<Version> {
    const listed = Object.entries(files).map(([path, bytes]) => ({
      path,
      size: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    }));
    const created = await this.must<VersionUpload>('POST', `/models/${model}/versions`, {
      files: listed,
      tags: options.tags,
      uses: options.uses,
    });
    for (const blob of created.missing) {
      const file = listed.find((entry) => entry.sha256 === blob.sha256)!;
      const sent = await fetch(blob.url!, {
        method: 'PUT',
        headers: blob.headers,
        body: Buffer.from(files[file.path]!),
        signal: AbortSignal.timeout(this.timeoutMs),
      });
      if (!sent.ok) throw new Error(`PUT of ${file.path}: ${sent.status}`);
    }
    const at = `/models/${model}/versions/${created.version.number}`;
    const done = await this.must<Version>('POST', `${at}/complete`);
    return options.publish === false ? done : this.must<Version>('POST', `${at}/publish`);
  }

  addEndpoint(spec: EndpointSpecInput): Promise<Endpoint> {
    return this.must('POST', '/endpoints', spec);
  }
  endpoint(name: string): Promise<Endpoint> {
    return this.must('GET', `/endpoints/${encodeURIComponent(name)}`);
  }
  async servers(): Promise<Server[]> {
    return (await this.must<{ items: Server[] }>('GET', '/servers')).items;
  }

  async serve<T = unknown>(
    endpoint: string,
    body: unknown,
    headers: Record<string, string> = {},
    timeoutMs = 30_000,
  ): Promise<Answer<T>> {
    const response = await fetch(`${this.stack.router.address}/serve/${endpoint}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    return { status: response.status, body: JSON.parse(text) as T, headers: response.headers };
  }

  /** Waits until the endpoint is served by `version` (asked through the router), at most `timeoutMs`. */
  async untilServed(endpoint: string, version: number, body: unknown, timeoutMs = 30_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    let last = 'no answer';
    while (Date.now() < deadline) {
      const answer = await this.serve(endpoint, body).catch((error) => ({
        status: 0,
        body: String(error),
        headers: new Headers(),
      }));
      last = `${answer.status} version ${answer.headers.get('x-perch-version')} ${JSON.stringify(answer.body).slice(0, 200)}`;
      if (answer.status === 200 && answer.headers.get('x-perch-version') === String(version)) return;
      await new Promise((next) => setTimeout(next, 50));
    }
    throw new Error(
      `${endpoint} version ${version} is not served after ${timeoutMs} ms; last: ${last}\n${await this.stack.logs()}`,
    );
  }
}
