import type { EndpointSpecInput } from '@perch/contracts';
import { inParallel } from './admin.client.ts';
import { treeCpuSeconds } from './control-plane.ts';
import type { ScaleOptions } from './options.ts';
import { endpointName, modelName, project, seedRegistry } from './registry.seed.ts';
import { type Place, Simulation, until } from './simulation.ts';
import { differenceOf, type TrafficByPurpose, TrafficMeter } from './traffic.ts';

export interface PublishCost {
  /** From the request until every router held the new version. */
  routedMs: number;
  /** From the request until the replaced version was unloaded. */
  settledMs: number;
  queries: number;
  controlPlaneCpuMs: number;
  postgresCpuMs: number;
  bytesToAgents: number;
  bytesFromAgents: number;
  bytesToRouters: number;
}

export interface Figures {
  options: ScaleOptions;
  /** Deployments, and models that the servers hold. */
  deployments: number;
  models: number;
  /** Every server holds what it should, every router has every deployment. */
  converged: boolean;
  addedSeconds: number;
  reconcileSeconds: number;
  reconcile: { queriesPerEndpoint: number; controlPlaneCpuSeconds: number; postgresCpuSeconds: number };
  publish: PublishCost;
  idle: { queriesPerSecond: number; controlPlaneCpuPercent: number; postgresCpuPercent: number; requestsPerSecond: number; bytesPerSecond: number }; // biome-ignore format: one row reads better
  /** Of all control planes together. */
  rssMegabytes: number;
}

interface Reading {
  at: number;
  queries: number;
  cpuSeconds: number;
  rssBytes: number;
  postgresSeconds: number;
  traffic: TrafficByPurpose;
}

const mostIdleLooks = 5;

/** One run: start, fill, idle, publish one version after the other. `postgresPid`: whose CPU is read; undefined: not read. */
export class Measurement {
  readonly simulation: Simulation;
  private readonly meter = new TrafficMeter();
  private deadlineSeconds = 0;

  constructor(
    private readonly options: ScaleOptions,
    place: Place,
    private readonly postgresPid: number | undefined,
    private readonly say: (line: string) => void = () => undefined,
  ) {
    this.simulation = new Simulation(options, place);
    this.deadlineSeconds = 120 + options.endpoints / 8;
  }

  async run(): Promise<Figures> {
    this.meter.start();
    try {
      await this.simulation.start();
      this.say('started');
      return await this.measure();
    } catch (error) {
      this.say(String(error));
      throw error;
    } finally {
      this.meter.stop();
      await this.simulation.stop();
    }
  }

  private async measure(): Promise<Figures> {
    const { options, simulation } = this;
    const targets = this.publishTargets();
    const seed = { models: options.endpoints, published: options.versions, drafts: targets };
    await seedRegistry(simulation.admin, simulation.db, seed);
    this.say('registry filled');
    const begin = await this.read();
    await inParallel(options.endpoints, 16, (index) => this.add(index));
    const added = await this.read();
    this.say(`${options.endpoints} endpoints added in ${secondsOf(begin, added).toFixed(1)} s`);
    await this.untilRouted();
    const routed = await this.read();
    this.say(`all routed after ${secondsOf(begin, routed).toFixed(1)} s`);
    await this.untilQuiet();
    const idle = await this.idle();
    const publish = await this.publishAll(targets, idle);
    const end = await this.read();
    return {
      options,
      ...(await this.counts()),
      addedSeconds: secondsOf(begin, added),
      reconcileSeconds: secondsOf(begin, routed),
      reconcile: {
        queriesPerEndpoint: (routed.queries - begin.queries) / options.endpoints,
        controlPlaneCpuSeconds: routed.cpuSeconds - begin.cpuSeconds,
        postgresCpuSeconds: routed.postgresSeconds - begin.postgresSeconds,
      },
      publish,
      idle,
      rssMegabytes: end.rssBytes / 2 ** 20,
    };
  }

  /** Spread over all endpoints. */
  private publishTargets(): number[] {
    const { publishes, endpoints } = this.options;
    const count = Math.min(publishes, endpoints);
    return Array.from({ length: count }, (_, turn) => Math.floor((turn * endpoints) / count));
  }

  private async add(index: number): Promise<void> {
    const spec: EndpointSpecInput = {
      name: endpointName(index),
      model: { project, name: modelName(index), maxVersions: this.options.versions },
      fleet: { replicas: this.options.replicas },
    };
    await this.simulation.admin.must('POST', '/endpoints', spec);
  }

  private async untilRouted(): Promise<void> {
    const { endpoints, versions } = this.options;
    const missing = new Set(Array.from({ length: endpoints }, (_, index) => endpointName(index)));
    const { routers } = this.simulation;
    await until('all endpoints routed', this.deadlineSeconds, () => {
      for (const name of missing) {
        if (!routers.every((router) => router.versionsOf(name).length === versions)) break;
        missing.delete(name);
      }
      return [missing.size === 0, `${missing.size} endpoints are not routed, the first of them ${[...missing][0]}`];
    });
  }

  /** Nothing is due, nothing is under way, all servers are in step. */
  private async untilQuiet(): Promise<void> {
    const { agents, db } = this.simulation;
    await until('quiet', this.deadlineSeconds, async () => {
      const { rows } = await db.query(
        `select count(*)::int as due from work where kind not in ('fleet-sweep') and (ticket is not null or next_at <= now())`,
      );
      const moving = agents.filter(({ inStep }) => !inStep).length;
      return [rows[0].due === 0 && moving === 0, `${rows[0].due} pieces of work due, ${moving} servers out of step`];
    });
  }

  /** Looks again while it still grows quieter: on a busy machine the last work of the fill takes longer than a look. */
  private async idle(): Promise<Figures['idle']> {
    await new Promise((next) => setTimeout(next, 1_000));
    let figures = await this.lookIdle();
    for (let look = 1; look < mostIdleLooks; look += 1) {
      const next = await this.lookIdle();
      const isSettled = next.queriesPerSecond > 0.8 * figures.queriesPerSecond;
      if (next.queriesPerSecond < figures.queriesPerSecond) figures = next;
      if (isSettled) break;
    }
    return figures;
  }

  private async lookIdle(): Promise<Figures['idle']> {
    const before = await this.read();
    await new Promise((next) => setTimeout(next, this.options.idleSeconds * 1_000));
    const after = await this.read();
    const seconds = secondsOf(before, after);
    const traffic = Object.values(differenceOf(before.traffic, after.traffic));
    const sum = (pick: (one: (typeof traffic)[number]) => number) => traffic.reduce((all, one) => all + pick(one), 0);
    return {
      queriesPerSecond: (after.queries - before.queries) / seconds,
      controlPlaneCpuPercent: (100 * (after.cpuSeconds - before.cpuSeconds)) / seconds,
      postgresCpuPercent: (100 * (after.postgresSeconds - before.postgresSeconds)) / seconds,
      requestsPerSecond: sum(({ requests }) => requests) / seconds,
      bytesPerSecond: sum(({ sentBytes, receivedBytes }) => sentBytes + receivedBytes) / seconds,
    };
  }

  /** One after the other; what idling costs in the same time is taken off. */
  private async publishAll(targets: readonly number[], idle: Figures['idle']): Promise<PublishCost> {
    let routedMs = 0;
    const before = await this.read();
    for (const index of targets) routedMs += await this.publishOne(index);
    const after = await this.read();
    const count = targets.length;
    const seconds = secondsOf(before, after);
    const { desired, observed, 'routing-table': table } = differenceOf(before.traffic, after.traffic);
    const cpuMs = (used: number, idlePercent: number) => (1_000 * (used - (seconds * idlePercent) / 100)) / count;
    const beats = ((seconds * this.options.servers) / 2) * 120;
    return {
      routedMs: routedMs / count,
      settledMs: (1_000 * seconds) / count,
      queries: (after.queries - before.queries - seconds * idle.queriesPerSecond) / count,
      controlPlaneCpuMs: cpuMs(after.cpuSeconds - before.cpuSeconds, idle.controlPlaneCpuPercent),
      postgresCpuMs: cpuMs(after.postgresSeconds - before.postgresSeconds, idle.postgresCpuPercent),
      bytesToAgents: desired.receivedBytes / count,
      bytesFromAgents: Math.max(0, observed.sentBytes - beats) / count,
      bytesToRouters: table.receivedBytes / count,
    };
  }

  private async publishOne(index: number): Promise<number> {
    const { admin, routers, agents } = this.simulation;
    const { versions } = this.options;
    const number = versions + 1;
    const started = performance.now();
    await admin.must('POST', `/models/${project}/${modelName(index)}/versions/${number}/publish`);
    const name = endpointName(index);
    await until(`version ${number} of ${name} routed`, 60, () => [
      routers.every((router) => router.versionsOf(name).includes(number)),
      `routers hold ${routers.map((router) => router.versionsOf(name).join(',')).join('; ')}`,
    ]);
    const routedMs = performance.now() - started;
    const old = `${modelName(index)}-v1-`;
    await until(`version 1 of ${name} unloaded`, 60, () => {
      const held = agents.filter(({ triton }) => triton.snapshot.present.some((model) => model.startsWith(old)));
      return [held.length === 0, `${held.map((agent) => agent.name).join(', ')} still hold it`];
    });
    await this.untilQuiet();
    return routedMs;
  }

  private async counts(): Promise<Pick<Figures, 'deployments' | 'models' | 'converged'>> {
    const { agents, routers, options } = this.simulation;
    const models = agents.reduce((sum, { triton }) => sum + triton.snapshot.present.length, 0);
    const wanted = agents.reduce((sum, { document }) => sum + Object.keys(document?.models ?? {}).length, 0);
    const routed = routers.map(({ table }) =>
      Object.values(table?.endpoints ?? {}).reduce((sum, { targets }) => sum + targets.length, 0),
    );
    const deployments = options.endpoints * options.versions;
    return {
      deployments,
      models,
      converged:
        models === wanted &&
        models === deployments * options.replicas &&
        routed.every((count) => count === deployments),
    };
  }

  private async read(): Promise<Reading> {
    const usages = await Promise.all(this.simulation.planes.map((plane) => plane.usage()));
    const sum = (pick: (usage: (typeof usages)[number]) => number) =>
      usages.reduce((all, usage) => all + pick(usage), 0);
    return {
      at: performance.now(),
      queries: sum(({ queries }) => queries),
      cpuSeconds: sum(({ cpuSeconds }) => cpuSeconds),
      rssBytes: sum(({ rssBytes }) => rssBytes),
      postgresSeconds: this.postgresPid === undefined ? 0 : treeCpuSeconds(this.postgresPid),
      traffic: this.meter.read(),
    };
  }
}

const secondsOf = (before: Reading, after: Reading): number => (after.at - before.at) / 1_000;
