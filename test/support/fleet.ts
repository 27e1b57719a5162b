import { randomUUID } from 'node:crypto';
import { Global, type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  type Actor,
  bundlePath,
  type DesiredServer,
  type Endpoint,
  type EndpointSpecInput,
  type ManifestFile,
  type ModuleFacts,
  manifestDigest,
  moduleDigest,
  moduleFacts,
  type ObservedModel,
  type ProcessingModuleRecord,
  patchSections,
  plainUses,
  type RoutingTable,
  type ServerFacts,
  type ServerUsage,
  sha256Hex,
} from '@perch/contracts';
import {
  CONFIG_TEXTS,
  EndpointReconcile,
  EndpointService,
  EndpointsModule,
  FanOutReconcile,
  KEYS,
  MODULES,
  type ModuleSource,
  PROCESSING_POLICY,
  RoutingTableReconcile,
  rolloutWork,
  type ServableVersion,
  VERSIONS,
  type VersionSource,
} from '@perch/endpoints';
import {
  DesiredReconcile,
  EnrolmentService,
  FleetModule,
  type FleetOptions,
  Installation,
  RouterService,
  readDesired,
  readTable,
  ServerService,
  SweepReconcile,
  theOnlyKey,
  work,
} from '@perch/fleet';
import { LOGGER, Metrics, silentLogger } from '@perch/platform';
import { CHANGE_LOG, DatabaseModule, type Outcome, Transactions, WorkStore } from '@perch/platform/database';
import { PromotionModule, RolloutReconcile } from '@perch/promotion';
import { configTexts } from '../../apps/control-plane/src/config-text.source.ts';
import { createTestDatabase, snapshotDatabase, type TestDatabase } from './postgres.ts';

export const operator: Actor = { id: 'k1', name: 'olga', role: 'operator', projects: [], endpoints: [] };

/** A registry in memory: `put` gives the next number. */
export class FakeVersions implements VersionSource {
  readonly versions: (ServableVersion & { model: string; files: ManifestFile[] })[] = [];
  onChange: (model: string) => Promise<void> = async () => undefined;

  async put(model: string, options: Partial<ServableVersion> & { files?: ManifestFile[] } = {}): Promise<number> {
    const number = 1 + Math.max(0, ...this.of(model).map((version) => version.number));
    const bytes = `${model} ${number}`;
    const files = options.files ?? [
      { path: 'model.onnx', sha256: sha256Hex(bytes), size: bytes.length },
      { path: 'tokenizer.json', sha256: sha256Hex('tokenizer'), size: 9 },
    ];
    this.versions.push({
      id: randomUUID(),
      state: 'published',
      tags: [],
      framework: 'onnx',
      signature: {
        inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
        outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 2] }],
      },
      manifestDigest: manifestDigest(files),
      ...options,
      number,
      model,
      files,
    });
    await this.onChange(model);
    return number;
  }

  async change(model: string, number: number, change: Partial<ServableVersion>): Promise<void> {
    Object.assign(this.of(model).find((version) => version.number === number)!, change);
    await this.onChange(model);
  }

  of(model: string) {
    return this.versions.filter((version) => version.model === model);
  }
  async versionsOf(project: string, name: string) {
    return this.of(`${project}/${name}`);
  }
  async modelsUsing(model: string) {
    const users = this.versions.filter(({ uses }) => Object.values(plainUses(uses)).some((use) => use.model === model));
    return [...new Set(users.map((version) => version.model))];
  }
  async filesOf(id: string) {
    return this.versions.find((version) => version.id === id)!.files;
  }
  async urlsOf(hashes: readonly string[]) {
    return new Map(hashes.map((hash) => [hash, `http://127.0.0.1/${hash}`]));
  }
  readonly texts = new Map<string, string>();
  async textOf(file: ManifestFile) {
    return this.texts.get(file.sha256) ?? '';
  }
}

export interface Noted {
  actor: string;
  action: string;
  subject: string;
  detail: Record<string, unknown>;
}

/** Registered modules in memory: `put` gives the next number of a name. */
export class FakeModules implements ModuleSource {
  readonly records: ProcessingModuleRecord[] = [];

  /** `hooks` default to preprocess and postprocess; modules of one `text` are the same. */
  put(name: string, text = 'export default {}', facts: Partial<ModuleFacts> = {}): ProcessingModuleRecord {
    const [newest = 0] = this.numbersNow(name);
    const files = [{ path: bundlePath, sha256: sha256Hex(text), size: Buffer.byteLength(text) }];
    const full = moduleFacts.parse({ hooks: ['preprocess', 'postprocess'], ...facts });
    const record = {
      name,
      number: newest + 1,
      digest: moduleDigest(full, files),
      facts: full,
      files,
      description: '',
      createdAt: '2026-11-21T00:00:00.000Z',
      createdBy: 'olga',
    };
    this.records.push(record);
    return record;
  }

  async findModule(name: string, number?: number) {
    const wanted = number ?? this.numbersNow(name)[0];
    return this.records.find((one) => one.name === name && one.number === wanted) ?? null;
  }
  async moduleNumbers(name: string) {
    return this.numbersNow(name);
  }
  private numbersNow(name: string): number[] {
    return this.records
      .filter((one) => one.name === name)
      .map(({ number }) => number)
      .sort((a, b) => b - a);
  }
}

/** The control plane's heart on a real Postgres, with its work done step by step instead of by timers. */
export class FleetWorld {
  readonly versions = new FakeVersions();
  readonly modules = new FakeModules();
  readonly keys: { id: string; hash: string; endpoints: string[] }[] = [];
  readonly noted: Noted[] = [];
  /** Kinds of work that nobody does here. */
  readonly asleep = new Set<string>();
  database!: TestDatabase;
  app!: INestApplicationContext;

  static async start(options: Partial<FleetOptions> = {}, database?: TestDatabase): Promise<FleetWorld> {
    const world = new FleetWorld();
    world.database = database ?? (await createTestDatabase());
    await world.open(options);
    await world.get(WorkStore).enqueue(null, work.routingTable, theOnlyKey);
    return world;
  }

  private async open(options: Partial<FleetOptions>): Promise<void> {
    const { versions, modules, keys, noted } = this;
    const changes = {
      record: async (_tx: unknown, actor: Actor, action: string, subject: string, detail: Record<string, unknown>) =>
        void noted.push({ actor: actor.name, action, subject, detail }),
    };
    const outside = [
      { provide: LOGGER, useValue: silentLogger },
      { provide: Metrics, useValue: new Metrics() },
      { provide: CHANGE_LOG, useValue: changes },
      { provide: VERSIONS, useValue: versions },
      { provide: MODULES, useValue: modules },
      { provide: PROCESSING_POLICY, useValue: { publisherIsolation: 'worker' } },
      { provide: CONFIG_TEXTS, useValue: configTexts },
      { provide: KEYS, useValue: { inferenceKeys: async () => keys } },
    ];
    @Global()
    @Module({ providers: outside, exports: outside })
    class OutsideModule {}
    const endpoints = EndpointsModule.forRoot({ imports: [], bind: [] });
    @Module({
      imports: [
        OutsideModule,
        DatabaseModule.forRoot(this.database),
        FleetModule.forRoot(options),
        endpoints,
        PromotionModule.forRoot({ imports: [endpoints] }),
      ],
    })
    class WorldModule {}
    this.app = await NestFactory.createApplicationContext(WorldModule, { logger: false });
    versions.onChange = (model) => this.get(WorkStore).enqueue(null, 'model', model);
  }

  // biome-ignore lint/suspicious/noExplicitAny: any class of the application
  get<T>(token: (abstract new (...args: any[]) => T) | string | symbol): T {
    return this.app.get(token as never, { strict: false });
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.database.drop();
  }

  /** Notes where database and registry are; the answer sets both back to there, while everybody else goes on. */
  async dump(): Promise<() => Promise<void>> {
    const versions = structuredClone(this.versions.versions);
    const restore = await snapshotDatabase(this.database);
    return async () => {
      await restore();
      this.versions.versions.splice(0, Number.POSITIVE_INFINITY, ...structuredClone(versions));
    };
  }

  private readonly loops: Record<string, (key: string) => Promise<Outcome | unknown>> = {
    model: (key) => this.get(FanOutReconcile).reconcileModel(key),
    [work.pool]: (key) => this.get(FanOutReconcile).reconcilePool(key),
    [work.endpoint]: (key) => this.get(EndpointReconcile).reconcile(key),
    [rolloutWork]: (key) => this.get(RolloutReconcile).reconcile(key),
    [work.server]: (key) => this.get(DesiredReconcile).publishDesired(key),
    [work.routingTable]: () => this.get(RoutingTableReconcile).publish(),
  };

  /** Does one piece of due work; false: there is none. `order` picks the kind (tests shuffle it). */
  async step(order: readonly string[] = Object.keys(this.loops)): Promise<boolean> {
    const store = this.get(WorkStore);
    for (const kind of order) {
      if (this.asleep.has(kind)) continue;
      const [claim] = await store.claim(kind, 1, 5_000);
      if (!claim) continue;
      try {
        const outcome = (await this.loops[kind]!(claim.key)) as Outcome | undefined;
        await store.finish(claim, outcome?.again === 'after' ? outcome.ms : null);
      } catch (error) {
        await store.fail(claim, String(error), 0);
        throw error;
      }
      return true;
    }
    return false;
  }

  /** Does all work there is, also what asked to be looked at later. */
  async settle(): Promise<void> {
    await this.database.query('update work set next_at = now() where ticket is null');
    for (let steps = 0; await this.step(); steps += 1)
      if (steps > 2_000) throw new Error('work does not come to an end');
  }

  /** All work, and what servers and routers make of it, until nothing moves any more. */
  async converge(agents: readonly FakeAgent[], routers: readonly FakeRouter[] = []): Promise<void> {
    let before = '';
    for (let turn = 0; turn < 12; turn += 1) {
      await this.settle();
      for (const agent of agents) await agent.sync();
      await this.settle();
      for (const router of routers) await router.sync();
      await this.settle();
      const now = await this.fingerprint();
      if (now === before) return;
      before = now;
    }
  }

  private async fingerprint(): Promise<string> {
    const [row] = await this.database.query(
      `select (select string_agg(id || revision, ',' order by id) from documents) as documents,
         (select string_agg(id || state, ',' order by id) from deployments) as deployments,
         (select string_agg(deployment_id::text || server_id || state, ',' order by deployment_id, server_id) from placements) as placements,
         (select string_agg(server_id || triton_model || state, ',' order by server_id, triton_model) from server_models) as models`,
    );
    return JSON.stringify(row);
  }

  /** What a process that was killed leaves: its tickets. A new one starts at once instead of when their leases are over. */
  async restart(): Promise<void> {
    await this.database.query('update work set ticket = null, again = false, next_at = now()');
  }

  /** The `n`th transaction from now on ends in a crash, just before or just after its commit. Returns how to stop that. */
  crashAt(n: number, when: 'before commit' | 'after commit'): { crashed: () => boolean; stop: () => void } {
    const transactions = this.get(Transactions);
    const run = transactions.run.bind(transactions);
    let count = 0;
    transactions.run = async (steps) => {
      count += 1;
      const now = count === n;
      const result = await run(async (tx) => {
        const done = await steps(tx);
        if (now && when === 'before commit') throw new Crash();
        return done;
      });
      if (now) throw new Crash();
      return result;
    };
    return { crashed: () => count >= n, stop: () => Object.assign(transactions, { run }) };
  }

  endpoint(name: string): Promise<Endpoint> {
    return this.get(EndpointService).get(name);
  }

  /** `version state` of each deployment, newest first. */
  async states(name: string): Promise<string[]> {
    return (await this.endpoint(name)).deployments.map(({ version, state }) => `${version} ${state}`);
  }

  async apply(spec: EndpointSpecInput): Promise<void> {
    await this.get(EndpointService).apply(operator, spec);
  }

  async agent(name: string, pool = 'default'): Promise<FakeAgent> {
    const agent = new FakeAgent(this, name, pool);
    await agent.enrol();
    await this.settle();
    return agent;
  }

  async router(name: string): Promise<FakeRouter> {
    const router = new FakeRouter(this, name);
    await router.enrol();
    return router;
  }
}

/** The process died here. */
export class Crash extends Error {}

export const ruleSpec = (name: string, model: string, more: Partial<EndpointSpecInput> = {}): EndpointSpecInput => {
  const [project, modelName] = model.split('/') as [string, string];
  return { name, model: { project, name: modelName }, ...more };
};

/** What an agent does towards the control plane, without a Triton: it loads what it is told at once, or as the test says. */
export class FakeAgent {
  id = '';
  lineage: string | null = null;
  revision = 0;
  confirmed = true;
  desired: DesiredServer['models'] = {};
  /** What its Triton holds. An unconfirmed document takes nothing away. */
  readonly held = new Map<string, ObservedModel>();
  /** Triton models (by prefix) that do not load, with Triton's words; or that take their time ('loading'). */
  readonly behaviour = new Map<string, string>();
  tritonLive = true;
  /** It was told to end. */
  leaving = false;
  /** What its machine is; undefined: it does not say. */
  facts: ServerFacts | undefined;
  usage: ServerUsage | undefined;
  /** What a model (by prefix) is measured to take. */
  readonly sizes = new Map<string, number>();
  bootId = 'b1';
  /** Called with the models that are about to be unloaded. */
  beforeUnload: (names: string[]) => void = () => undefined;

  constructor(
    readonly world: FleetWorld,
    readonly name: string,
    private readonly pool: string,
  ) {}

  async enrol(previousLineage: string | null = null): Promise<void> {
    const address = { http: `${this.name}:8000`, grpc: `${this.name}:8001` };
    const request = { kind: 'server' as const, name: this.name, labels: {}, ...address, previousLineage };
    const grant = { joins: 'server' as const, pool: this.pool };
    this.id = (await this.world.get(EnrolmentService).enrol(grant, request)).id;
  }

  get follower() {
    return { after: this.lineage === null ? null : this.revision, lineage: this.lineage };
  }

  async poll(): Promise<boolean> {
    const answer = readDesired(await this.world.get(ServerService).desiredFor(this.id, this.follower, 0));
    if (answer === null) return false;
    const head = answer.kind === 'whole' ? answer.document : answer;
    if (answer.kind === 'whole') this.desired = answer.document.models;
    else {
      if (answer.base !== this.revision) throw new Error('patch of another base');
      this.desired = patchSections({ models: this.desired }, answer.patch).models as never;
    }
    Object.assign(this, { lineage: head.lineage, revision: head.revision, confirmed: head.confirmed });
    return true;
  }

  /** Makes the Triton hold what the document says, as far as it may. */
  act(): void {
    for (const name of Object.keys(this.desired)) {
      const said = [...this.behaviour].find(([prefix]) => name.startsWith(prefix))?.[1];
      const state = said === 'loading' ? 'loading' : said ? 'failed' : 'ready';
      const before = this.held.get(name);
      if (before?.state !== state)
        this.held.set(name, { state, reason: state === 'failed' ? said! : null, since: new Date().toISOString() });
      const size = [...this.sizes].find(([prefix]) => name.startsWith(prefix))?.[1];
      if (size !== undefined && this.desired[name]?.measure && state === 'ready')
        this.held.set(name, { ...this.held.get(name)!, memory: { ramBytes: size, gpuBytes: {} } });
    }
    const going = this.confirmed ? [...this.held.keys()].filter((name) => !(name in this.desired)) : [];
    if (going.length > 0) this.beforeUnload(going);
    for (const name of going) this.held.delete(name);
  }

  async report(): Promise<{ needReport: boolean; drained?: boolean }> {
    const { facts, usage, leaving } = this;
    return this.world.get(ServerService).observed(this.id, {
      bootId: this.bootId,
      hash: randomUUID(),
      observed: {
        lineage: this.lineage,
        revision: this.revision,
        heldRemovals: [],
        triton: { live: this.tritonLive, ready: this.tritonLive, name: 'triton', version: '2.51.0', gpus: 0 },
        models: this.tritonLive ? Object.fromEntries(this.held) : {},
        disk: { freeBytes: 1, cacheBytes: 1 },
        ...(facts ? { facts } : {}),
        ...(usage ? { usage } : {}),
        ...(leaving ? { leaving } : {}),
      },
    });
  }

  async sync(): Promise<void> {
    await this.poll();
    this.act();
    await this.report();
  }

  get models(): string[] {
    return [...this.held.keys()].map((name) => name.replace(/-[0-9a-f]{12}$/, '')).sort();
  }
}

/** What a router does towards the control plane, without requests. */
export class FakeRouter {
  id = '';
  table: RoutingTable | undefined;
  inFlight: Record<string, number> = {};
  /** Versions whose processing does not load here, with the reason. */
  readonly broken = new Map<number, string>();
  held = false;

  constructor(
    readonly world: FleetWorld,
    readonly name: string,
  ) {}

  async enrol(previousLineage: string | null = null): Promise<void> {
    const grant = { joins: 'router' as const, pool: null };
    const answer = await this.world
      .get(EnrolmentService)
      .enrol(grant, { kind: 'router', name: this.name, previousLineage });
    this.id = answer.id;
  }

  async poll(): Promise<void> {
    const follower = { after: this.table?.revision ?? null, lineage: this.table?.lineage ?? null };
    const answer = readTable(await this.world.get(RouterService).tableFor(follower, 0));
    if (answer === null) return;
    if (answer.kind === 'whole') this.table = answer.document;
    else {
      const { endpoints, servers, keys } = this.table!;
      const sections = patchSections({ endpoints, servers, keys }, answer.patch);
      const { lineage, revision, confirmed } = answer;
      this.table = { ...this.table!, ...(sections as never as RoutingTable), lineage, revision, confirmed };
    }
  }

  async report(): Promise<void> {
    const { table, inFlight, held } = this;
    const targets = Object.values(table?.endpoints ?? {}).flatMap((route) => route.targets);
    const problems = Object.fromEntries(
      targets.flatMap(({ deployment, version }) => {
        const words = this.broken.get(version);
        return words === undefined ? [] : [[deployment, words]];
      }),
    );
    const report = { lineage: table?.lineage ?? null, revision: table?.revision ?? -1, inFlight, problems, held };
    await this.world.get(RouterService).report(this.id, { bootId: 'b1', hash: randomUUID(), report });
  }

  async sync(): Promise<void> {
    await this.poll();
    await this.report();
  }

  /** `version share` of each arm of an endpoint's route. */
  arms(endpoint: string): string[] {
    const route = this.table?.endpoints[endpoint];
    return (route?.arms ?? []).map(({ deployment, share }) => {
      const target = route!.targets.find((one) => one.deployment === deployment)!;
      return `${target.version} ${share}`;
    });
  }

  versions(endpoint: string): number[] {
    return (this.table?.endpoints[endpoint]?.targets ?? []).map(({ version }) => version);
  }
}

export const installation = (world: FleetWorld) => world.get(Installation);
export const sweep = (world: FleetWorld) => world.get(SweepReconcile).sweep();
export const transactions = (world: FleetWorld) => world.get(Transactions);
