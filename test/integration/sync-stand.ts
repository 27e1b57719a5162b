import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  canonicalJson,
  type DesiredModel,
  type DesiredServer,
  desiredServer,
  diffSections,
  digestOf,
  type Enrol,
  enrol,
  type ObservedServer,
  observedReport,
  sha256Hex,
  tritonModelName,
} from '@perch/contracts';
import { tritonCommand } from '../../scripts/real-triton.mjs';
import { Program } from '../support/stack.ts';

export interface BlobGet {
  hash: string;
  from: number;
  to: number;
  response: ServerResponse;
  bytes: Buffer;
}

const joinKey = 'pj_test_join_key_of_the_stand';

/** What an agent sees of a control plane and its artifact store, with handles to make trouble. */
export class StandIn {
  readonly blobs = new Map<string, Buffer>();
  readonly gets: { hash: string; from: number; to: number }[] = [];
  readonly enrolments: Enrol[] = [];
  readonly observed: ObservedServer[] = [];
  document: DesiredServer;
  /** Answers nobody: every connection is cut. */
  away = false;
  token = randomUUID();
  refusedUrls = 0;
  beats = 0;
  /** May answer a blob request itself (return true). */
  onBlob: ((get: BlobGet) => boolean) | undefined;
  /** What reports are told of a drain; undefined: nothing. */
  drained: boolean | undefined;
  private stateHash = '';
  private previous: DesiredServer | undefined;
  private waiting: (() => void)[] = [];
  private server!: Server;
  private serial = 0;
  private goodFrom = 0;

  constructor() {
    this.document = { lineage: randomUUID(), revision: 0, schema: 1, confirmed: true, models: {} };
  }

  async start(): Promise<this> {
    this.server = createServer((request, response) => void this.answer(request, response));
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  get address(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Newest whole state that the agent reported. */
  get state(): ObservedServer | undefined {
    return this.observed.at(-1);
  }

  put(bytes: Uint8Array): { sha256: string; size: number } {
    const sha256 = sha256Hex(bytes);
    this.blobs.set(sha256, Buffer.from(bytes));
    return { sha256, size: bytes.length };
  }

  /** A desired model of one ONNX file, by its Triton name. */
  model(
    bytes: Uint8Array,
    version: number,
    engine: Partial<DesiredModel['engine']> = {},
    texts: Record<string, string> = {},
  ): [string, DesiredModel] {
    const beside = Object.entries(texts).map(([path, text]) => ({ path, ...this.put(Buffer.from(text)) }));
    const files = [{ path: '1/model.onnx', ...this.put(bytes) }, ...beside];
    const settings: DesiredModel['engine'] = {
      platform: 'onnxruntime_onnx',
      backend: 'onnxruntime',
      maxBatchSize: 8,
      dynamicBatching: null,
      instances: [],
      inputs: [{ name: 'x', type: 'FP32', dims: [4] }],
      outputs: [{ name: 'y', type: 'FP32', dims: [4] }],
      parameters: {},
      defaultModelFilename: null,
      config: null,
      ...engine,
    };
    const digest = digestOf({ files, settings });
    return [tritonModelName('toy', version, digest), { files, engine: settings, digest }];
  }

  publish(models: Record<string, DesiredModel>, head: Partial<DesiredServer> = {}): void {
    this.previous = this.document;
    const { lineage, revision, confirmed } = this.document;
    this.document = desiredServer.parse({
      lineage,
      confirmed,
      schema: 1,
      ...head,
      revision: head.revision ?? revision + 1,
      models,
    });
    this.wake();
  }

  /** Addresses given so far are refused with 403. */
  expireUrls(): void {
    this.goodFrom = this.serial + 1;
  }

  /** Tokens given so far are unknown. */
  forgetTokens(): void {
    this.token = randomUUID();
    this.wake();
  }

  wake(): void {
    for (const wake of this.waiting.splice(0)) wake();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.away) return void request.socket.destroy();
    const url = new URL(request.url!, this.address);
    if (url.pathname.startsWith('/blob/')) return this.answerBlob(url, request, response);
    const send = (status: number, body?: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(body === undefined ? undefined : JSON.stringify(body));
    };
    const problem = (status: number, code: string) => send(status, { code, detail: `${code} for the test`, status });
    const bearer = request.headers.authorization?.replace('Bearer ', '');
    const text = await bodyOf(request);
    if (url.pathname === '/internal/v1/enrol') {
      if (bearer !== joinKey) return problem(401, 'unauthenticated');
      this.enrolments.push(enrol.parse(JSON.parse(text)));
      return send(200, { id: 'server-1', token: this.token, pool: 'default' });
    }
    if (bearer !== this.token) return problem(401, 'unauthenticated');
    if (url.pathname === '/internal/v1/blobs/urls') return send(200, { urls: this.urlsOf(JSON.parse(text).hashes) });
    if (url.pathname === '/internal/v1/servers/server-1/observed') return send(200, this.take(text));
    if (url.pathname === '/internal/v1/servers/server-1/desired') return this.poll(url, request, send);
    return problem(404, 'not_found');
  }

  private take(text: string): { needReport: boolean; drained?: boolean } {
    const { observed, patch, hash } = observedReport.parse(JSON.parse(text));
    this.beats += 1;
    const before = this.state;
    if (patch && (patch.base !== this.stateHash || !before)) return { needReport: true };
    if (observed) this.observed.push(observed);
    else if (patch) {
      const models = Object.entries({ ...before!.models, ...patch.models });
      const kept = models.flatMap(([name, model]) => (model === null ? [] : [[name, model] as const]));
      this.observed.push({ ...patch.observed, models: Object.fromEntries(kept) });
    }
    if (observed || patch) this.stateHash = hash;
    const answer = { needReport: this.observed.length === 0 };
    return this.drained === undefined ? answer : { ...answer, drained: this.drained };
  }

  private async poll(
    url: URL,
    request: IncomingMessage,
    send: (status: number, body?: unknown) => void,
  ): Promise<void> {
    const token = this.token;
    const after = url.searchParams.get('after');
    const lineage = url.searchParams.get('lineage');
    const until = Date.now() + Number(url.searchParams.get('wait')) * 1_000;
    const isNews = () =>
      this.document.revision > 0 &&
      (lineage !== this.document.lineage || Number(after ?? -1) !== this.document.revision);
    while (!isNews() && Date.now() < until && !request.destroyed && token === this.token) {
      const timer = setTimeout(() => this.wake(), until - Date.now());
      await new Promise<void>((resolve) => this.waiting.push(resolve));
      clearTimeout(timer);
    }
    if (token !== this.token) return send(401, { code: 'unauthenticated', detail: 'token', status: 401 });
    if (!isNews()) return send(304);
    const { previous } = this;
    if (previous && previous.lineage === lineage && String(previous.revision) === after) {
      const same = (a: unknown, b: unknown) => canonicalJson(a) === canonicalJson(b);
      const patch = diffSections({ models: previous.models }, { models: this.document.models }, same);
      const { models, ...head } = this.document;
      return send(200, { kind: 'patch', base: previous.revision, ...head, patch });
    }
    send(200, { kind: 'whole', document: this.document });
  }

  private urlsOf(hashes: string[]): Record<string, { url: string; size: number }> {
    this.serial += 1;
    const found = hashes.flatMap((hash) => {
      const blob = this.blobs.get(hash);
      return blob ? [[hash, { url: `${this.address}/blob/${hash}?serial=${this.serial}`, size: blob.length }]] : [];
    });
    return Object.fromEntries(found);
  }

  private answerBlob(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const hash = url.pathname.slice('/blob/'.length);
    const blob = this.blobs.get(hash);
    if (Number(url.searchParams.get('serial')) < this.goodFrom) {
      this.refusedUrls += 1;
      return void response.writeHead(403).end();
    }
    if (!blob) return void response.writeHead(404).end();
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const from = range ? Number(range[1]) : 0;
    const to = range ? Math.min(Number(range[2]), blob.length - 1) : blob.length - 1;
    this.gets.push({ hash, from, to });
    const bytes = blob.subarray(from, to + 1);
    if (this.onBlob?.({ hash, from, to, response, bytes })) return;
    response.writeHead(range ? 206 : 200, { 'content-length': bytes.length }).end(bytes);
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** A model server of either kind, at the same address over its restarts. */
export interface ModelServer {
  http: string;
  grpc: string;
  metrics: string;
  repository: string;
  start(): Promise<void>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createTcpServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

export async function engineServer(folder: string): Promise<ModelServer> {
  const repository = join(folder, 'repository');
  await mkdir(repository, { recursive: true });
  const [http, grpc, metrics] = await Promise.all([freePort(), freePort(), freePort()]);
  const at = (port: number) => `127.0.0.1:${port}`;
  const env = {
    PERCH_ENGINE_HTTP: at(http),
    PERCH_ENGINE_GRPC: at(grpc),
    PERCH_ENGINE_METRICS: at(metrics),
    PERCH_ENGINE_REPOSITORY: repository,
  };
  const program = new Program('engine', 'engine', env, join(folder, 'engine.log'));
  return {
    http: at(http),
    grpc: at(grpc),
    metrics: at(metrics),
    repository,
    start: async () => void (await program.start()),
    kill: (signal) => program.stop(signal),
  };
}

export async function realTriton(folder: string): Promise<ModelServer> {
  const repository = join(folder, 'repository');
  await mkdir(repository, { recursive: true });
  const [httpPort, grpcPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const { command, args, env } = tritonCommand({ repository, httpPort, grpcPort, metricsPort, id: 'triton-sync' });
  let child: ChildProcess | undefined;
  return {
    http: `127.0.0.1:${httpPort}`,
    grpc: `127.0.0.1:${grpcPort}`,
    metrics: `127.0.0.1:${metricsPort}`,
    repository,
    start: async () => {
      child = spawn(command, args, { env, stdio: 'ignore' });
      const until = Date.now() + 30_000;
      for (;;) {
        const live = await fetch(`http://127.0.0.1:${httpPort}/v2/health/live`).then(
          ({ ok }) => ok,
          () => false,
        );
        if (live) return;
        if (child.exitCode !== null || Date.now() > until) throw new Error('the real Triton did not start');
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    kill: async (signal) => {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child!.once('exit', resolve));
      child.kill(signal);
      await ended;
    },
  };
}

/** An agent beside a model server, and what it talks to. */
export class Site {
  readonly stand = new StandIn();
  folder = '';
  server!: ModelServer;
  agent!: Program;

  static async open(kind: (folder: string) => Promise<ModelServer>, env: Record<string, string> = {}): Promise<Site> {
    const site = new Site();
    site.folder = await mkdtemp(join(tmpdir(), 'perch-site-'));
    await site.stand.start();
    site.server = await kind(site.folder);
    const { http, grpc, repository } = site.server;
    site.agent = new Program(
      'agent',
      'agent',
      {
        PERCH_LISTEN: '127.0.0.1:0',
        PERCH_CONTROL_URL: site.stand.address,
        PERCH_JOIN_KEY: joinKey,
        PERCH_DATA_DIR: join(site.folder, 'data'),
        PERCH_TRITON_HTTP: http,
        PERCH_TRITON_GRPC: grpc,
        PERCH_TRITON_REPOSITORY: repository,
        PERCH_NAME: 'server-a',
        PERCH_LABELS: 'zone=a,kind=test',
        ...env,
      },
      join(site.folder, 'agent.log'),
    );
    return site;
  }

  async start(): Promise<void> {
    await this.server.start();
    await this.agent.start();
  }

  async close(): Promise<void> {
    await this.agent.stop('SIGKILL');
    await this.server.kill('SIGKILL');
    await this.stand.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  stateOf(name: string): string | undefined {
    return this.stand.state?.models[name]?.state;
  }

  /** The model's answer to `x` (FP32, one row), over HTTP; undefined when it is not served. */
  async infer(name: string, x: number[]): Promise<number[] | undefined> {
    const body = JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1, x.length], data: x }] });
    const reply = await fetch(`http://${this.server.http}/v2/models/${name}/infer`, { method: 'POST', body }).catch(
      () => undefined,
    );
    if (!reply?.ok) return undefined;
    return ((await reply.json()) as { outputs: { data: number[] }[] }).outputs[0]!.data;
  }

  async health(): Promise<{ ready: boolean }> {
    return (await fetch(`${this.agent.address}/health/ready`)).json() as Promise<{ ready: boolean }>;
  }
}
