import type { RouteTarget, RoutingTable } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import { type CompiledRoute, type CompiledTable, compileRoute, indexKeys } from '@perch/routing';
import type { EffectiveTable } from '../table/effective-table.decide.ts';
import { Slice } from '../table/slice.ts';
import { DeploymentStore } from './deployment.store.ts';
import type { Deployment } from './deployment.ts';
import { moduleTargets } from './pipeline.store.ts';
import { Preparation } from './preparation.ts';
import type { ProcessingStore } from './processing.store.ts';

/** What requests read: one reference, swapped whole. */
export interface ServingTable extends CompiledTable {
  deployments: ReadonlyMap<string, Deployment>;
}

/** What one worker process reports. `revision` -1: it has no table yet. */
export interface WorkerState {
  lineage: string | null;
  revision: number;
  inFlight: Record<string, number>;
  unlisted?: Record<string, number>;
  problems: Record<string, string>;
  loading?: Record<string, string>;
  held: boolean;
}

/** What replies and metrics call a target: its side while a candidate is on trial, else its deployment. */
function armOf({ rollout }: CompiledRoute, target: RouteTarget): string {
  if (target === rollout?.stable) return 'stable';
  return target === rollout?.candidate ? 'candidate' : target.deployment;
}

/**
 * Prepares a table aside and then swaps it in whole. A route none of whose targets this process can serve stays as it
 * was before, and its deployments are reported as in flight, so that nobody unloads them.
 */
export class ServingTables {
  current: ServingTable | undefined;
  private readonly processing: ProcessingStore;
  private readonly deployments: DeploymentStore;
  private readonly logger: Logger;
  private held = false;
  private keep: ReadonlySet<string> = new Set();
  private problems: Record<string, string> = {};
  private loading: Record<string, string> = {};
  private last: Promise<void> = Promise.resolve();
  private newest: EffectiveTable | undefined;
  private readonly preparation: Preparation;
  private readonly listeners: (() => void)[] = [];

  constructor(processing: ProcessingStore, deployments: DeploymentStore, logger: Logger) {
    this.processing = processing;
    this.preparation = new Preparation(processing, logger);
    this.deployments = deployments;
    this.logger = logger;
  }

  onSwap(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Resolves when the table is served. Tables are taken one after the other, in the order of the calls. */
  apply(effective: EffectiveTable): Promise<void> {
    this.newest = effective;
    this.last = this.last
      .then(() => this.swap(effective))
      .catch((error) => {
        this.logger.error('table not applied', { error });
      });
    return this.last;
  }

  state(): WorkerState {
    const table = this.current;
    return {
      lineage: table?.lineage ?? null,
      revision: table?.revision ?? -1,
      inFlight: this.deployments.inFlightBeside(table?.deployments, this.keep),
      unlisted: this.deployments.unlisted(table?.deployments),
      problems: this.problems,
      loading: this.loading,
      held: this.held,
    };
  }

  private async swap(effective: EffectiveTable): Promise<void> {
    const { table, held, heldDeployments } = effective;
    const startedAt = performance.now();
    const slice = new Slice();
    const { problems, loading, late } = await this.preparation.run(table, slice, !this.current);
    // the same again, with what was not ready
    void late?.then(() => (this.newest === effective ? this.apply(effective) : undefined));
    const endpoints = new Map<string, CompiledRoute>();
    const deployments = new Map<string, Deployment>();
    const keep = new Set(heldDeployments);
    for (const name in table.endpoints) {
      const route = this.compile(name, table, deployments, keep);
      endpoints.set(name, route);
      if (slice.isOver()) await slice.next();
    }
    // a split's targets are other endpoints' deployments: theirs are in force, and what the split sends is counted as theirs
    for (const { name, targets } of endpoints.values())
      for (const target of targets)
        if (!deployments.has(target.deployment)) this.ensure(target.endpoint ?? name, target, table, deployments);
    const { lineage, revision } = table;
    const servers = new Map(Object.entries(table.servers));
    this.current = { lineage, revision, endpoints, servers, keys: indexKeys(table.keys), deployments };
    this.held = held;
    this.keep = keep;
    this.problems = problems;
    this.loading = loading;
    for (const listener of this.listeners) listener();
    this.logger.debug('table swapped', { lineage, revision, tookMs: Math.round(performance.now() - startedAt) });
    this.deployments.forgetUnused(deployments);
    this.processing.keepOnly(this.wanted(table, deployments));
  }

  /** What is served, and what the table asks for and is still being loaded, or has failed and waits for its next try. */
  private *wanted(table: RoutingTable, deployments: ReadonlyMap<string, Deployment>): Generator<RouteTarget> {
    for (const { target } of deployments.values()) yield target;
    for (const name in table.endpoints) {
      const route = table.endpoints[name]!;
      for (const target of route.pipeline ? moduleTargets(name, route).values() : route.targets)
        if (!deployments.has(target.deployment)) yield target;
    }
  }

  private compile(
    name: string,
    table: RoutingTable,
    deployments: Map<string, Deployment>,
    keep: Set<string>,
  ): CompiledRoute {
    const route = table.endpoints[name]!;
    if (route.pipeline) return this.compilePipeline(name, table, deployments);
    const isUsable = (target: RouteTarget) => this.processing.find(target) !== undefined;
    const before = this.current?.endpoints.get(name);
    const unchanged = before?.route === route && before.targets.length === route.targets.length;
    const compiled = unchanged && route.targets.every(isUsable) ? before : compileRoute(name, route, isUsable);
    // a route without targets was emptied on purpose: stopped, or nothing that its rule wants
    const unusable = compiled.targets.length === 0 && route.targets.length > 0;
    if (unusable && before && before.targets.length > 0) {
      for (const { deployment } of before.targets) {
        keep.add(deployment);
        const kept = this.current!.deployments.get(deployment);
        if (kept) deployments.set(deployment, kept);
      }
      return before;
    }
    for (const target of compiled.targets)
      if ((target.endpoint ?? name) === name) this.ensure(name, target, table, deployments, armOf(compiled, target));
    return compiled;
  }

  /** One with a module that this process cannot run stays as it was before. */
  private compilePipeline(name: string, table: RoutingTable, deployments: Map<string, Deployment>): CompiledRoute {
    const route = table.endpoints[name]!;
    const before = this.current?.endpoints.get(name);
    const usable = (of: CompiledRoute['route']) =>
      [...moduleTargets(name, of).values()].every((target) => this.processing.find(target) !== undefined);
    const keeps = before?.route === route || (before?.route.pipeline && !usable(route) && usable(before.route));
    const compiled = before && keeps ? before : compileRoute(name, route);
    for (const [node, target] of moduleTargets(name, compiled.route))
      this.ensure(name, target, table, deployments, node);
    return compiled;
  }

  private ensure(
    endpoint: string,
    target: RouteTarget,
    table: RoutingTable,
    deployments: Map<string, Deployment>,
    arm = target.deployment,
  ): void {
    const deployment = this.deployments.ensure(endpoint, target, table, this.processing, arm);
    if (deployment) deployments.set(target.deployment, deployment);
  }
}
