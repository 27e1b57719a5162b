import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RouteTarget } from '@perch/contracts';
import { createTritonControl } from '@perch/triton/control';
import { type ControlStub, startControlStub, target } from '../../bench/control-stub.mjs';
import { scaleModel } from '../support/onnx.ts';
import { type ModelServer, putModel } from '../support/real-triton.ts';
import { Program } from '../support/stack.ts';

const config = (batch: number) => `version_policy { all {} } platform: "onnxruntime_onnx" max_batch_size: ${batch}
instance_group { count: 1 kind: KIND_CPU }
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }`;

/** Puts `y = factor · x` on a model server; several factors are versions 1, 2 and so on. */
export async function loadScale(server: ModelServer, model: string, ...factors: number[]): Promise<void> {
  const versions = Object.fromEntries(factors.map((factor, index) => [index + 1, scaleModel(factor)]));
  await putModel(server.repository, model, { config: config(8), versions });
  const control = createTritonControl({ grpc: server.grpc, timeoutMs: 30_000 });
  await control.load(model, { timeoutMs: 30_000 }).finally(() => control.close());
}

export async function unload(server: ModelServer, model: string): Promise<void> {
  const control = createTritonControl({ grpc: server.grpc, timeoutMs: 30_000 });
  await control.unload(model, { timeoutMs: 30_000 }).finally(() => control.close());
}

/** The target of a scale model: version n multiplies by n. */
export const scaleTarget = (version: number, servers: string[], fields: Partial<RouteTarget> = {}): RouteTarget =>
  target({
    deployment: `d${version}`,
    version,
    tritonModel: `scale-v${version}`,
    servers,
    maxBatchSize: 8,
    inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
    outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 4] }],
    ...fields,
  });

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the router answered
  json: any;
}

/** The real router as a process, with a stand-in control plane that is fed by hand. */
export class RouterStand {
  folder!: string;
  control!: ControlStub;
  router!: Program;
  private ownsControl = true;

  /** `control`: one that several routers follow; whoever made it closes it. */
  static async start(env: Record<string, string> = {}, control?: ControlStub): Promise<RouterStand> {
    const stand = new RouterStand();
    stand.folder = await mkdtemp(join(tmpdir(), 'perch-router-'));
    stand.control = control ?? (await startControlStub());
    stand.ownsControl = !control;
    const settings = {
      PERCH_LISTEN: '127.0.0.1:0',
      PERCH_CONTROL_URL: stand.control.address,
      PERCH_JOIN_KEY: stand.control.joinKey,
      PERCH_DATA_DIR: join(stand.folder, 'data'),
      ...env,
    };
    stand.router = new Program('router', 'router', settings, join(stand.folder, 'router.log'));
    await stand.router.start();
    return stand;
  }

  async stop(): Promise<void> {
    await this.router.stop();
    if (this.ownsControl) await this.control.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  async send(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(this.router.address + path, init);
    const text = await response.text();
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      json = undefined;
    }
    return { status: response.status, headers: response.headers, text, json };
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    return this.send(path, { method: 'POST', body: text, headers: { 'content-type': 'application/json', ...headers } });
  }

  /** Publishes and waits until the router says that it serves it. */
  async publish(sections: Parameters<ControlStub['publish']>[0]): Promise<number> {
    const revision = this.control.publish(sections);
    await this.untilReport((report) => report.revision === revision && report.lineage === this.control.lineage);
    return revision;
  }

  async untilReport(holds: (report: ControlStub['reports'][number]) => boolean, limitMs = 15_000): Promise<void> {
    const deadline = Date.now() + limitMs;
    while (Date.now() < deadline) {
      const last = this.control.reports.at(-1);
      if (last && holds(last)) return;
      await new Promise((done) => setTimeout(done, 20));
    }
    throw new Error(`no such report: ${JSON.stringify(this.control.reports.at(-1))}; ${await this.router.tail()}`);
  }
}

/** Sends one after another until stopped; `workers` at a time. */
export class ClosedLoad {
  readonly failures: string[] = [];
  sent = 0;
  private running = true;
  private readonly workers: Promise<void>[];

  constructor(workers: number, send: () => Promise<Answer>) {
    this.workers = Array.from({ length: workers }, async () => {
      while (this.running) {
        const answer = await send().catch((error) => ({ status: 0, text: String(error.cause ?? error) }));
        this.sent += 1;
        if (answer.status !== 200) this.failures.push(`${answer.status} ${answer.text}`);
      }
    });
  }

  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.workers);
  }
}
