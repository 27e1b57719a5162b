import { mkdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { AppError } from '@perch/contracts';
import { ChildProgram, type ChildWords, type Launch } from './child-program.ts';
import { Database } from './database.source.ts';
import { freePort } from './embedded-postgres.source.ts';
import { type FolderLock, isAlive, lockFolder } from './folder-lock.source.ts';
import { choosePorts } from './port.source.ts';
import * as plan from './program.plan.ts';
import { untilAnswers, untilServing } from './readiness.source.ts';
import { StateStore, type UpState } from './state.store.ts';
import { findTriton, type InstalledTriton, tritonLaunch } from './triton.source.ts';
import { numbered, type Places, placesOf, type UpOptions } from './up.config.ts';
import { Watchdog } from './watchdog.source.ts';

export const UP_OPTIONS = Symbol('options of perch up');
export const UP_WORDS = Symbol('where perch up says what happens');

/** What is running, and where. */
export interface Running {
  controlPlane: string;
  router: string;
  engine: { kind: 'embedded' | 'triton'; version?: string };
  /** Model servers with their agents. */
  servers: Omit<plan.ServerPlace, 'repository'>[];
  database: string;
  dataDir: string;
  /** Where the embedded database really lies; null: it is an outside one. */
  databaseDir: string | null;
  logs: string;
  pid: number;
  pids: Record<string, number | undefined>;
  adminKey: string;
}

const mainOf = (app: string) => fileURLToPath(new URL(`../../../${app}/dist/main.js`, import.meta.url));

/** All of Perch on one machine: starts its programs in order, keeps them running, stops them in the opposite order. */
@Injectable()
export class StackService implements BeforeApplicationShutdown {
  private readonly places: Places;
  private readonly watchdog = new Watchdog();
  /** In the order of their start. */
  private readonly programs: ChildProgram[] = [];
  private readonly engines: ChildProgram[] = [];
  private readonly edge: ChildProgram[] = [];
  private control: ChildProgram | undefined;
  private database: Database | undefined;
  private databaseUrl = '';
  private lock: FolderLock | undefined;
  private state!: UpState;
  private ports!: plan.Ports;
  private triton: InstalledTriton | undefined;
  private readonly cancelled = new AbortController();
  private readonly childWords: ChildWords;

  constructor(
    @Inject(UP_OPTIONS) private readonly options: UpOptions,
    @Inject(UP_WORDS) private readonly words: ChildWords,
  ) {
    this.places = placesOf(options.dataDir);
    this.childWords = { say: (sentence) => words.say(sentence), restarted: () => void this.remember() };
  }

  /** What is still starting ends; `start` throws. */
  cancel(): void {
    this.cancelled.abort();
  }

  /** Resolves when a request could be served. Throws with the end of the log of the program that did not start. */
  async start(): Promise<Running> {
    await this.prepare();
    if (this.options.triton) this.triton = await findTriton(this.options.toolsDir, this.options.environment);
    this.watchdog.start();
    const { places, ports, options } = this;
    const { secrets } = this.state;
    const control = this.child('control-plane', () =>
      plan.controlPlaneEnv(options, places, ports, secrets, this.databaseUrl),
    );
    this.control = control;
    const servers = ports.servers.map((_, place) => place);
    this.engines.push(...servers.map((place) => this.engine(place)));
    await together([
      ...servers.map((place) => this.begin(this.engines[place]!, ports.servers[place]!, ['http', 'grpc', 'metrics'])),
      this.startDatabase().then(() => this.begin(control, ports, options.controlPort ? [] : ['control'])),
    ]);
    const agents = servers.map((place) =>
      this.child(numbered('agent', place), () => plan.agentEnv(places, ports, secrets, place)),
    );
    const router = this.child('router', () => plan.routerEnv(places, ports, secrets));
    this.edge.push(...agents, router);
    await together([
      ...servers.map((place) => this.begin(agents[place]!, ports.servers[place]!, ['agent'])),
      this.begin(router, ports, options.routerPort ? [] : ['router']),
    ]);
    await this.remember();
    await untilServing(
      plan.controlUrl(this.ports),
      plan.routerUrl(this.ports),
      this.state.secrets.adminKey,
      this.cancelled.signal,
    );
    return this.describe();
  }

  private async prepare(): Promise<void> {
    const { dataDir } = this.options;
    // As root the database runs as another user, who must get through to its own folder (and sees nothing else).
    await mkdir(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
    this.lock = await lockFolder(this.places.lock);
    if (this.lock.recovered)
      this.words.say('an earlier perch up on this folder was killed; going on from what it left');
    const { logs, artifacts, router, repository, agent } = this.places;
    const ofServers = Array.from({ length: this.options.servers }, (_, place) => [repository(place), agent(place)]);
    for (const folder of [logs, artifacts, router, ...ofServers.flat()])
      await mkdir(folder, { recursive: true, mode: 0o700 });
    const store = new StateStore(this.places.state);
    this.state = await store.read();
    await endLeftovers(this.state.children);
    this.ports = await choosePorts(this.options, this.state.ports);
    await store.write(this.state);
  }

  private async startDatabase(): Promise<void> {
    if (this.options.postgresUrl) {
      this.databaseUrl = this.options.postgresUrl;
      return;
    }
    this.database = new Database(this.places.postgres, this.logOf('postgres'), this.watchdog, this.childWords);
    this.databaseUrl = await this.database.start();
  }

  private engine(place: number): ChildProgram {
    const triton = this.triton;
    if (!triton)
      return this.child(numbered('engine', place), () =>
        plan.engineEnv(plan.serverPlace(this.places, this.ports, place)),
      );
    return this.launched(numbered('triton', place), () => {
      const { http: httpPort, grpc: grpcPort, metrics: metricsPort } = this.ports.servers[place]!;
      const wish = { repository: this.places.repository(place), httpPort, grpcPort, metricsPort };
      const ready = (signal: AbortSignal) => untilAnswers(`http://127.0.0.1:${httpPort}/v2/health/live`, signal);
      return { ...tritonLaunch(triton, wish, this.options.environment), ready };
    });
  }

  private child(name: string, env: () => Record<string, string>): ChildProgram {
    return this.launched(name, () => ({
      command: process.execPath,
      args: [mainOf(name.replace(/-\d+$/, ''))],
      env: { ...this.options.environment, ...env() },
    }));
  }

  private launched(name: string, launch: () => Launch): ChildProgram {
    const program = new ChildProgram(name, this.logOf(name), launch, this.watchdog, this.childWords);
    this.programs.push(program);
    return program;
  }

  /** Somebody may take a port between our look and the program's start: then another one, unless it was asked for. */
  private async begin<Name extends string>(
    program: ChildProgram,
    ports: Record<Name, number>,
    movable: readonly Name[],
  ): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await program.start(this.cancelled.signal);
        return;
      } catch (error) {
        const taken = error instanceof AppError && /EADDRINUSE|address already in use/i.test(error.message);
        if (!taken || attempt >= 3 || movable.length === 0) throw error;
        for (const name of movable) ports[name] = await freePort();
      }
    }
  }

  private async remember(): Promise<void> {
    this.state.ports = this.ports;
    this.state.children = this.programs.map(({ pid }) => pid).filter((pid) => pid !== undefined);
    await new StateStore(this.places.state).write(this.state);
  }

  private describe(): Running {
    const servers = this.ports.servers.map((_, place) => plan.serverPlace(this.places, this.ports, place));
    const pids = Object.fromEntries(this.programs.map(({ name, pid }) => [name, pid]));
    return {
      controlPlane: plan.controlUrl(this.ports),
      router: plan.routerUrl(this.ports),
      engine: {
        kind: this.triton ? 'triton' : 'embedded',
        ...(this.triton ? { version: this.triton.version } : {}),
      },
      servers: servers.map(({ repository: _repository, ...shown }) => shown),
      database: this.database ? `embedded PostgreSQL, 127.0.0.1:${this.database.port}` : new URL(this.databaseUrl).host,
      dataDir: this.options.dataDir,
      databaseDir: this.database?.place ?? null,
      logs: this.places.logs,
      pid: process.pid,
      pids: { ...pids, ...(this.database ? { postgres: this.database.pid } : {}), watchdog: this.watchdog.pid },
      adminKey: this.state.secrets.adminKey,
    };
  }

  private logOf(name: string): string {
    return `${this.places.logs}/${name}.log`;
  }

  /** Routers first, the database last: nobody loses what they are using. Runs on every way out. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.edge.map((program) => program.stop()));
    await Promise.all(this.engines.map((program) => program.stop()));
    await this.control?.stop();
    await this.database?.stop();
    await this.watchdog.stop();
    if (this.lock && this.state) await new StateStore(this.places.state).write({ ...this.state, children: [] });
    await this.lock?.release();
  }
}

/** Waits for all of them, then throws the first failure: nothing is still starting when the stop begins. */
async function together(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** Children of a run that was killed: the watchdog is ending them; what it cannot end is ended here. */
async function endLeftovers(pids: readonly number[]): Promise<void> {
  const ours = async (pid: number) => {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return isAlive(pid) && /dist\/main\.js|tritonserver/.test(line);
  };
  const deadline = Date.now() + 10_000;
  for (const pid of pids) {
    while ((await ours(pid)) && Date.now() < deadline) await new Promise((next) => setTimeout(next, 50));
    if (await ours(pid)) process.kill(pid, 'SIGKILL');
  }
}
