import type { RouteTarget, RoutingTable, TableServer } from '@perch/contracts';
import type { LoadedProcessing } from '@perch/processing/host';
import { armLines, type Deployment, type Gauge } from './deployment.ts';
import type { ProcessingStore } from './processing.store.ts';
import { ArmStats } from './request-stats.ts';
import { type ServerLoad, Upstream } from './upstream.ts';

const maxStats = 10_000;

/** What outlives a table: gauges, counts, and what is known about each server. */
export class DeploymentStore {
  readonly stats = new Map<string, ArmStats>();
  /** By deployment: what was in force last, and older ones that requests still run on. */
  private readonly gauges = new Map<string, Gauge[]>();
  private readonly loads = new Map<string, ServerLoad>();
  private readonly upstreams = new Map<string, Upstream>();
  private readonly known = new Map<string, Deployment>();

  /**
   * The deployment of a target; the one from the last table where nothing about it changed. Undefined: not usable.
   * `arm`: what replies and metrics call it.
   */
  ensure(
    endpoint: string,
    target: RouteTarget,
    table: RoutingTable,
    processing: ProcessingStore,
    arm = target.deployment,
  ): Deployment | undefined {
    const loaded = processing.find(target);
    if (!loaded) return undefined;
    const upstreams = this.upstreamsOf(target, table.servers);
    const before = this.known.get(target.deployment);
    if (
      before?.target === target &&
      before.processing === loaded &&
      before.stats.labels.arm === arm &&
      before.upstreams.length === upstreams.length &&
      before.upstreams.every((upstream, index) => upstream === upstreams[index])
    )
      return before;
    const { deployment, version } = target;
    const made: Deployment = {
      target,
      processing: loaded,
      upstreams,
      gauge: this.gaugeOf(target, loaded),
      stats: this.statsOf(endpoint, String(version), arm),
      replyLines: armLines(String(version), arm),
    };
    this.known.set(deployment, made);
    return made;
  }

  /** Requests running on deployments that the table does not hold, and at least 1 for each that must be kept loaded. */
  inFlightBeside(
    table: ReadonlyMap<string, Deployment> | undefined,
    keep: ReadonlySet<string>,
  ): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const [id, gauges] of this.gauges) {
      const count = inFlightOf(gauges);
      if (count > 0 && !table?.has(id)) counts[id] = count;
    }
    for (const id of keep) counts[id] = Math.max(1, inFlightOf(this.gauges.get(id) ?? []));
    return counts;
  }

  /** Requests in hand that may still be sent to a server which the table no longer lists for their deployment, by `<deployment> <server>`. */
  unlisted(table: ReadonlyMap<string, Deployment> | undefined): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const [id, gauges] of this.gauges) {
      const listed = table?.get(id)?.target.servers;
      if (!listed) continue;
      for (const { inFlight, servers } of gauges)
        for (const server of inFlight > 0 ? servers : [])
          if (!listed.includes(server)) counts[`${id} ${server}`] = (counts[`${id} ${server}`] ?? 0) + inFlight;
    }
    return counts;
  }

  /** Requests run through it. */
  inUse(processing: LoadedProcessing): boolean {
    for (const gauges of this.gauges.values())
      for (const gauge of gauges) if (gauge.inFlight > 0 && gauge.processing === processing) return true;
    return false;
  }

  forgetUnused(table: ReadonlyMap<string, Deployment>): void {
    for (const id of this.known.keys()) if (!table.has(id)) this.known.delete(id);
    for (const [id, gauges] of this.gauges) {
      const used = gauges.filter((gauge) => gauge.inFlight > 0 || table.get(id)?.gauge === gauge);
      if (used.length > 0) this.gauges.set(id, used);
      else this.gauges.delete(id);
    }
    const open = new Set<Upstream>();
    for (const { upstreams } of table.values()) for (const upstream of upstreams) open.add(upstream);
    for (const [key, upstream] of this.upstreams) if (!open.has(upstream)) this.upstreams.delete(key);
    if (this.stats.size <= maxStats) return;
    const live = new Set([...table.values()].map((one) => one.stats));
    for (const [key, stats] of this.stats) if (!live.has(stats)) this.stats.delete(key);
  }

  /** Model and server pairs that get no requests for now. */
  outOfUse(): number {
    let count = 0;
    for (const upstream of this.upstreams.values()) if (upstream.out !== 'no') count += 1;
    return count;
  }

  statsOf(endpoint: string, version: string, arm: string): ArmStats {
    const key = `${endpoint} ${version} ${arm}`;
    let stats = this.stats.get(key);
    if (!stats) {
      stats = new ArmStats(endpoint, version, arm);
      this.stats.set(key, stats);
    }
    return stats;
  }

  private gaugeOf({ deployment, servers }: RouteTarget, processing: LoadedProcessing): Gauge {
    const gauges = this.gauges.get(deployment) ?? [];
    const gauge = { inFlight: 0, servers, processing };
    this.gauges.set(deployment, [...gauges, gauge]);
    return gauge;
  }

  private upstreamsOf(target: RouteTarget, servers: Record<string, TableServer>): Upstream[] {
    const upstreams: Upstream[] = [];
    for (const id of target.servers) {
      const server = servers[id];
      if (!server) continue;
      const model = target.models?.[id] ?? target.tritonModel;
      const version = target.tritonVersion ?? '';
      const key = `${model} ${version} ${id} ${server.http} ${server.grpc}`;
      let upstream = this.upstreams.get(key);
      if (!upstream) {
        upstream = new Upstream(server, model, version, this.loadOf(id));
        this.upstreams.set(key, upstream);
      }
      upstreams.push(upstream);
    }
    return upstreams;
  }

  private loadOf(server: string): ServerLoad {
    let load = this.loads.get(server);
    if (!load) {
      load = { outstanding: 0 };
      this.loads.set(server, load);
    }
    return load;
  }
}

const inFlightOf = (gauges: readonly Gauge[]): number => gauges.reduce((sum, { inFlight }) => sum + inFlight, 0);
