import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type DesiredModel, digestOf, type Supervision, tritonModelName } from '@perch/contracts';
import { tritonCommand } from '../../scripts/real-triton.mjs';
import { freePorts } from '../support/real-triton.ts';
import { Program } from '../support/stack.ts';
import { StandIn } from './sync-stand.ts';

const run = promisify(execFile);
const mainFile = join(import.meta.dirname, '../../apps/agent/dist/main.js');

/** A model in Python that does `line` when it is loaded. */
const pythonModel = (line: string) => `
import os, signal, time
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def initialize(self, args):
        ${line}
    def execute(self, requests):
        x = lambda request: pb_utils.get_input_tensor_by_name(request, 'x').as_numpy()
        return [pb_utils.InferenceResponse([pb_utils.Tensor('y', x(request))]) for request in requests]
`;

/** The server without GPUs; what the agent fills in is left out. */
function withoutGpus(repository: string): { words: string[]; env: Record<string, string> } {
  const triton = tritonCommand({ repository, httpPort: 1, grpcPort: 1, metricsPort: 1, id: 'supervised' });
  const filledIn = /^--(model-repository|model-control-mode|(http|grpc|metrics)-port)/;
  const { PATH = '', LD_LIBRARY_PATH = '' } = triton.env;
  return {
    words: [triton.command, ...triton.args.filter((word) => !filledIn.test(word))],
    env: { PATH, LD_LIBRARY_PATH },
  };
}

export interface SiteOptions {
  env?: Record<string, string>;
  /** Words in front of the server's command. */
  wrapper?: string[];
  /** Another server than the one without GPUs, with its arguments; the agent fills in what it needs. */
  command?: string[];
}

/** An agent that is the parent of a real Triton, and a control plane that is none. */
export class SupervisedSite {
  readonly stand = new StandIn();
  folder = '';
  http = '';
  repository = '';
  agent!: Program;
  private env: Record<string, string> = {};

  static async open({ env = {}, wrapper = [], command }: SiteOptions = {}): Promise<SupervisedSite> {
    const site = new SupervisedSite();
    site.folder = await mkdtemp(join(tmpdir(), 'perch-supervised-'));
    site.repository = join(site.folder, 'repository');
    await mkdir(site.repository);
    await site.stand.start();
    const [httpPort, grpcPort, metricsPort] = (await freePorts(3)) as [number, number, number];
    site.http = `127.0.0.1:${httpPort}`;
    const { words, env: serverEnv } = command ? { words: command, env: {} } : withoutGpus(site.repository);
    site.env = {
      PATH: process.env['PATH'] ?? '',
      ...serverEnv,
      PERCH_LISTEN: '127.0.0.1:0',
      PERCH_CONTROL_URL: site.stand.address,
      PERCH_JOIN_KEY: 'pj_test_join_key_of_the_stand',
      PERCH_DATA_DIR: join(site.folder, 'data'),
      PERCH_TRITON_HTTP: site.http,
      PERCH_TRITON_GRPC: `127.0.0.1:${grpcPort}`,
      PERCH_TRITON_METRICS: `127.0.0.1:${metricsPort}`,
      PERCH_TRITON_REPOSITORY: site.repository,
      PERCH_NAME: 'supervised',
      PERCH_RESTART_FIRST_MS: '100',
      PERCH_RESTART_MAX_MS: '400',
      ...env,
    };
    const args = ['--supervise', '--', ...wrapper, ...words];
    site.agent = new Program('agent', 'agent', site.env, join(site.folder, 'agent.log'), args);
    return site;
  }

  async close(): Promise<void> {
    await this.agent.stop('SIGTERM');
    const pid = this.tritonPid;
    if (pid) process.kill(pid, 'SIGKILL');
    await this.stand.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Undefined while no Triton runs. */
  get tritonPid(): number | undefined {
    try {
      const { pid } = JSON.parse(readFileSync(join(this.folder, 'data/triton.pid'), 'utf8')) as { pid: number };
      return existsSync(`/proc/${pid}`) ? pid : undefined;
    } catch {
      return undefined;
    }
  }

  get supervision(): Supervision | undefined {
    return this.stand.state?.supervision;
  }

  stateOf(name: string): string | undefined {
    return this.stand.state?.models[name]?.state;
  }

  reasonOf(name: string): string | null | undefined {
    return this.stand.state?.models[name]?.reason;
  }

  /** A model in Python; `line` is done in its `initialize`. */
  python(line: string, version: number): [string, DesiredModel] {
    const files = [{ path: '1/model.py', ...this.stand.put(Buffer.from(pythonModel(line))) }];
    const tensor = { type: 'FP32' as const, dims: [4] };
    const engine: DesiredModel['engine'] = {
      platform: 'python',
      backend: 'python',
      maxBatchSize: 8,
      dynamicBatching: null,
      instances: [],
      inputs: [{ name: 'x', ...tensor }],
      outputs: [{ name: 'y', ...tensor }],
      parameters: {},
      defaultModelFilename: null,
      config: null,
    };
    const digest = digestOf({ files, engine });
    return [tritonModelName('py', version, digest), { files, engine, digest }];
  }

  /** The model's answer to ones; undefined when it is not served. */
  async infer(name: string): Promise<number[] | undefined> {
    const body = JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 1, 1, 1] }] });
    const url = `http://${this.http}/v2/models/${name}/infer`;
    const reply = await fetch(url, { method: 'POST', body }).catch(() => undefined);
    if (!reply?.ok) return undefined;
    return ((await reply.json()) as { outputs: { data: number[] }[] }).outputs[0]!.data;
  }

  async health(): Promise<{ ready: boolean; checks: { triton: { reason?: string } } }> {
    return (await fetch(`${this.agent.address}/health/ready`)).json() as never;
  }

  /** Another agent's program with the same settings. */
  async command(...words: string[]): Promise<{ code: number; stderr: string }> {
    const env = { ...this.env, PERCH_LISTEN: new URL(this.agent.address).host };
    return run(process.execPath, [mainFile, ...words], { env }).then(
      ({ stderr }) => ({ code: 0, stderr }),
      ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
    );
  }

  log(): Promise<string> {
    return readFile(join(this.folder, 'agent.log'), 'utf8');
  }
}

/** A memory cgroup with a limit; `fault` says why none can be made here. */
export class MemoryCage {
  readonly folder: string;
  readonly fault: string | undefined;

  constructor(name: string, limitBytes: number) {
    const v1 = existsSync('/sys/fs/cgroup/memory/memory.limit_in_bytes');
    this.folder = join(v1 ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup', name);
    try {
      mkdirSync(this.folder);
      writeFileSync(join(this.folder, v1 ? 'memory.limit_in_bytes' : 'memory.max'), String(limitBytes));
      this.fault = undefined;
    } catch {
      this.remove();
      this.fault = 'no right to make a memory cgroup (run as root where the cgroup file system can be written)';
    }
  }

  remove(): void {
    try {
      rmdirSync(this.folder);
    } catch {
      // never made, or processes in it are not gone yet
    }
  }
}
