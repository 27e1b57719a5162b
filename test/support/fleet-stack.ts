import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findS3, type RealS3, s3Environment, startS3 } from '../../scripts/real-s3.mjs';
import { tritonCommand } from '../../scripts/real-triton.mjs';
import type { AdminTarget } from './admin.ts';
import { FaultProxy } from './fault-proxy.ts';
import { type Part, postgresPart, programPart, SupervisedTritonPart, s3Part, TritonPart } from './fleet-part.ts';
import { OwnPostgres } from './own-postgres.ts';
import { reservePorts } from './ports.ts';
import { startEngine, startTriton } from './real-triton.ts';
import { Program } from './stack.ts';

export type LinkKind = 'router-triton' | 'agent-control' | 'router-control' | 'control-postgres' | 'to-s3';
export interface Link {
  kind: LinkKind;
  proxy: FaultProxy;
}

export interface FleetStackOptions {
  servers?: number;
  routers?: number;
  controlPlanes?: number;
  engine?: 'triton' | 'engine';
  /** A real S3 server where there is one; else, and with `false`, a folder. */
  s3?: boolean;
  controlPlane?: Record<string, string>;
  router?: Record<string, string>;
  agent?: Record<string, string>;
  /** Places of the servers whose agent is the parent of its Triton; real ones only. */
  supervised?: readonly number[];
  /** Where a server's agent and repository lie, by the server's place; default: below the stack's own folder. */
  serverFolders?: Record<number, string>;
}

export interface FleetServer {
  name: string;
  folder: string;
  repository: string;
  /** `host:port` of the model server itself. */
  http: string;
  tritonLog: string;
  triton: TritonPart | SupervisedTritonPart;
  agent: Program;
}

/**
 * A fleet as processes of their own: model servers with their agents, routers, control planes, Postgres and the object
 * store. Every connection between two of them goes through a fault proxy; tests themselves go straight to each.
 */
export class FleetStack implements AdminTarget {
  readonly adminKey = `pk_test_${randomBytes(24).toString('base64url')}`;
  readonly joinServer = `pj_test_${randomBytes(24).toString('base64url')}`;
  readonly joinRouter = `pj_test_${randomBytes(24).toString('base64url')}`;
  readonly servers: FleetServer[] = [];
  readonly routers: Program[] = [];
  readonly controlPlanes: Program[] = [];
  readonly parts: Part[] = [];
  readonly links: Link[] = [];
  /** Programs that ended though nobody asked them to, in order. */
  readonly unexpectedExits: string[] = [];
  folder!: string;
  postgres!: OwnPostgres;
  s3: RealS3 | undefined;

  static async start(options: FleetStackOptions = {}): Promise<FleetStack> {
    const stack = new FleetStack();
    stack.folder = await mkdtemp(join(tmpdir(), 'perch-fleet-'));
    await chmod(stack.folder, 0o711); // Postgres runs as another user and must get through
    try {
      await stack.startAll(options);
    } catch (error) {
      await stack.stop();
      throw error;
    }
    return stack;
  }

  get controlPlane(): Program {
    return this.controlPlanes[0]!;
  }
  get router(): Program {
    return this.routers[0]!;
  }
  part(name: string): Part {
    const found = this.parts.find((one) => one.name === name);
    if (!found) throw new Error(`no part is named ${name}; there are ${this.parts.map((one) => one.name).join(', ')}`);
    return found;
  }
  link(name: string): FaultProxy {
    const found = this.links.find(({ proxy }) => proxy.name === name)?.proxy;
    if (!found)
      throw new Error(`no link is named ${name}; there are ${this.links.map((one) => one.proxy.name).join(', ')}`);
    return found;
  }

  private async startAll(options: FleetStackOptions): Promise<void> {
    const wantsS3 = options.s3 !== false && findS3().found;
    [this.postgres, this.s3] = await Promise.all([
      OwnPostgres.start(this.folder),
      wantsS3 ? startS3({ folder: this.folder }) : undefined,
    ]);
    this.parts.push(postgresPart(this.postgres));
    if (this.s3) this.parts.push(s3Part(this.s3));
    await this.startControlPlanes(options);
    for (let place = 0; place < (options.servers ?? 1); place += 1) await this.addServer(place, options);
    for (let place = 0; place < (options.routers ?? 1); place += 1) await this.addRouter(place, options);
    await Promise.all([...this.servers.map(({ agent }) => agent.start()), ...this.routers.map((one) => one.start())]);
  }

  private async startControlPlanes(options: FleetStackOptions): Promise<void> {
    const database = await this.addLink('control-postgres', 'control-postgres', () => [this.postgres.address]);
    const url = new URL(this.postgres.url);
    url.host = database.address;
    const env = { PERCH_DATABASE_URL: url.toString(), ...(await this.storeSettings()), ...options.controlPlane };
    for (let place = 0; place < (options.controlPlanes ?? 1); place += 1) {
      const [port] = await reservePorts(1);
      const program = this.program(nameOf('control-plane', place, options.controlPlanes ?? 1), 'control-plane', {
        PERCH_LISTEN: `127.0.0.1:${port}`,
        PERCH_BOOTSTRAP_ADMIN_KEY: this.adminKey,
        PERCH_BOOTSTRAP_JOIN_KEY_SERVER: this.joinServer,
        PERCH_BOOTSTRAP_JOIN_KEY_ROUTER: this.joinRouter,
        ...env,
      });
      this.controlPlanes.push(program);
      this.parts.push(programPart('control-plane', program));
      await program.start();
    }
    await untilReady(this.controlPlane.address);
  }

  private async storeSettings(): Promise<Record<string, string>> {
    if (!this.s3) {
      await mkdir(join(this.folder, 'store'));
      return { PERCH_STORE_URL: `file://${join(this.folder, 'store')}` };
    }
    const { endpoint } = this.s3;
    const link = await this.addLink('to-s3', 'to-s3', () => [new URL(endpoint).host]);
    return s3Environment({ ...this.s3, endpoint: `http://${link.address}` });
  }

  /** Addresses of the control planes that run, for whoever asks any of them. */
  private readonly controlAddresses = (): string[] => {
    const running = this.controlPlanes.filter((one) => one.running);
    return (running.length > 0 ? running : this.controlPlanes).map((one) => new URL(one.address).host);
  };

  private async addServer(place: number, options: FleetStackOptions): Promise<void> {
    const name = `server-${letters[place]}`;
    const folder = options.serverFolders?.[place] ?? join(this.folder, name);
    const repository = join(folder, 'repository');
    await mkdir(repository, { recursive: true });
    const ports = (await reservePorts(3)) as [number, number, number];
    const at = await this.startModelServer(name, place, ports, repository, options);
    const http = await this.addLink('router-triton', `${name}-http`, () => [at.http]);
    const grpc = await this.addLink('router-triton', `${name}-grpc`, () => [at.grpc]);
    const control = await this.addLink('agent-control', `agent-${letters[place]}-control`, this.controlAddresses);
    const [port] = await reservePorts(1);
    const settings: Record<string, string> = {
      PERCH_LISTEN: `127.0.0.1:${port}`,
      PERCH_CONTROL_URL: `http://${control.address}`,
      PERCH_JOIN_KEY: this.joinServer,
      PERCH_DATA_DIR: join(folder, 'agent'),
      PERCH_TRITON_HTTP: at.http,
      PERCH_TRITON_GRPC: at.grpc,
      PERCH_TRITON_METRICS: at.metrics,
      PERCH_TRITON_REPOSITORY: repository,
      PERCH_ADVERTISE_HTTP: http.address,
      PERCH_ADVERTISE_GRPC: grpc.address,
      PERCH_NAME: name,
      ...at.env,
      ...options.agent,
    };
    const agent = this.program(`agent-${letters[place]}`, 'agent', settings, at.args);
    this.servers.push({ name, folder, repository, http: at.http, tritonLog: at.log, triton: at.part, agent });
    this.parts.push(at.part, programPart('agent', agent));
  }

  /** Its addresses, its part, and what its agent needs for it. */
  private async startModelServer(
    name: string,
    place: number,
    ports: [number, number, number],
    repository: string,
    options: FleetStackOptions,
  ) {
    const part = `triton-${letters[place]}`;
    if (options.supervised?.includes(place) && options.engine !== 'engine') {
      const [httpPort, grpcPort, metricsPort] = ports;
      const { command, args, env } = tritonCommand({ repository, httpPort, grpcPort, metricsPort, id: name });
      const [http, grpc, metrics] = ports.map((port) => `127.0.0.1:${port}`) as [string, string, string];
      const data = join(repository, '../agent');
      return {
        http,
        grpc,
        metrics,
        part: new SupervisedTritonPart(part, join(data, 'triton.pid'), http),
        log: join(data, 'triton.log'),
        args: ['--supervise', '--', command, ...args],
        env: { PATH: env['PATH'] ?? '', LD_LIBRARY_PATH: env['LD_LIBRARY_PATH'] ?? '' } as Record<string, string>,
      };
    }
    const server = await (options.engine === 'engine' ? startEngine : startTriton)({ id: name, repository, ports });
    const { http, grpc, metrics } = server;
    const log = join(server.folder, 'server.log');
    return {
      http,
      grpc,
      metrics,
      part: new TritonPart(part, server),
      log,
      args: [],
      env: {} as Record<string, string>,
    };
  }

  private async addRouter(place: number, options: FleetStackOptions): Promise<void> {
    const name = `router-${letters[place]}`;
    const control = await this.addLink('router-control', `${name}-control`, this.controlAddresses);
    const [port] = await reservePorts(1);
    const router = this.program(name, 'router', {
      PERCH_LISTEN: `127.0.0.1:${port}`,
      PERCH_CONTROL_URL: `http://${control.address}`,
      PERCH_JOIN_KEY: this.joinRouter,
      PERCH_DATA_DIR: join(this.folder, name),
      PERCH_NAME: name,
      // Both ways to a model server are in use where there are two routers.
      PERCH_TRITON_TRANSPORT: place % 2 === 0 ? 'http' : 'grpc',
      PERCH_STOP_DELAY_MS: '1000',
      ...options.router,
    });
    this.routers.push(router);
    this.parts.push(programPart('router', router));
  }

  private async addLink(kind: LinkKind, name: string, targets: () => string[]): Promise<FaultProxy> {
    const proxy = await FaultProxy.start(name, targets);
    this.links.push({ kind, proxy });
    return proxy;
  }

  private program(name: string, app: string, env: Record<string, string>, args: readonly string[] = []): Program {
    const program = new Program(name, app, env, join(this.folder, `${name}.log`), args);
    program.onUnexpectedExit = (words) => this.unexpectedExits.push(words);
    return program;
  }

  async stop(): Promise<void> {
    for (const part of this.parts) part.thaw();
    await Promise.all(this.links.map(({ proxy }) => proxy.set({ kind: 'pass' })));
    await Promise.all(this.routers.map((one) => one.stop()));
    // One that is the parent of a Triton would leave in order, which takes its time.
    const stop = ({ agent, triton }: FleetServer) => agent.stop(triton instanceof TritonPart ? 'SIGTERM' : 'SIGKILL');
    await Promise.all(this.servers.map(stop));
    await Promise.all(this.controlPlanes.map((one) => one.stop()));
    await Promise.all(this.servers.map(({ triton }) => triton.remove()));
    await Promise.all(this.links.map(({ proxy }) => proxy.close()));
    await this.postgres?.stop();
    await this.s3?.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Last lines of every program, for a failed test's message. */
  async logs(lines = 25): Promise<string> {
    const programs = [...this.routers, ...this.servers.map(({ agent }) => agent), ...this.controlPlanes];
    const said = programs.map(async (program) => `--- ${program.name}\n${await program.tail(lines)}`);
    const tritons = this.servers.map(async ({ triton, tritonLog }) => {
      const text = await readFile(tritonLog, 'utf8').catch(() => '');
      return `--- ${triton.name}\n${text
        .trim()
        .split('\n')
        .slice(-lines / 2)
        .join('\n')}`;
    });
    return (await Promise.all([...said, ...tritons])).join('\n');
  }
}

/** A control plane listens before it has its database. */
async function untilReady(address: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await fetch(`${address}/health/ready`, { signal: AbortSignal.timeout(5_000) }).catch(
      () => undefined,
    );
    if (answer?.ok) return;
    if (Date.now() > deadline) throw new Error(`${address} is not ready: ${await answer?.text()}`);
    await new Promise((next) => setTimeout(next, 100));
  }
}

const letters = 'abcdefghijklmnop';
const nameOf = (noun: string, place: number, count: number) => (count === 1 ? noun : `${noun}-${letters[place]}`);
