import { type BoundPipeline, type Route, type RouteTarget, sha256Hex } from '@perch/contracts';
import { type CompiledPipeline, compilePipeline, type LoadedProcessing, NodeLimit } from '@perch/processing/host';
import type { CompiledRoute } from '@perch/routing';
import type { DeploymentStore } from './deployment.store.ts';
import { armLines, type Deployment } from './deployment.ts';

/** A pipeline as requests run it. */
export interface ServedPipeline {
  bound: BoundPipeline;
  compiled: CompiledPipeline;
  /** What requests to it are counted under: its generation as their version. */
  arm: Deployment;
  modules: ReadonlyMap<string, RouteTarget>;
}

const noModel = { tritonModel: '', servers: [], modelless: true as const, maxBatchSize: 0, inputs: [], outputs: [], files: [] }; // biome-ignore format: one row reads better

const targets = new WeakMap<Route, ReadonlyMap<string, RouteTarget>>();

/** In the form of a deployment's id, so that who reads a report need not tell the two apart. */
function idOf(text: string): string {
  const hash = sha256Hex(text);
  return [hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20, 32)].join('-');
}

/** The modules of a route's pipeline, by node, as targets without a model. */
export function moduleTargets(name: string, route: Route): ReadonlyMap<string, RouteTarget> {
  let found = targets.get(route);
  if (!found) {
    found = new Map(
      Object.entries(route.pipeline?.modules ?? {}).map(([node, processing]) => {
        const deployment = idOf(JSON.stringify([name, node, processing]));
        return [node, { deployment, version: processing.module?.number ?? 1, processing, ...noModel }];
      }),
    );
    targets.set(route, found);
  }
  return found;
}

/** Nothing is asked of a pipeline's own arm. */
const nothing: LoadedProcessing = {
  declares: {},
  preprocess: () => ({ inputs: {} }),
  postprocess: () => null,
  unload: async () => undefined,
};

/** Pipelines of the tables in force, compiled on their first request. */
export class PipelineStore {
  private readonly served = new WeakMap<Route, ServedPipeline>();
  /** By pipeline and node: they hold over all requests, whichever table those began with. */
  private readonly limits = new Map<string, NodeLimit>();
  private readonly deployments: DeploymentStore;

  constructor(deployments: DeploymentStore) {
    this.deployments = deployments;
  }

  /** Undefined: the route is no pipeline's. */
  of({ name, route }: CompiledRoute): ServedPipeline | undefined {
    const bound = route.pipeline;
    if (!bound) return undefined;
    let found = this.served.get(route);
    if (!found) {
      const compiled = compilePipeline(name, bound);
      found = { bound, compiled, arm: this.armOf(name, bound), modules: moduleTargets(name, route) };
      this.served.set(route, found);
    }
    return found;
  }

  /** Undefined: the node has none. */
  limitOf({ compiled, bound }: ServedPipeline, node: string): NodeLimit | undefined {
    const most = bound.nodes[node]?.concurrency;
    if (most === undefined) return undefined;
    const key = `${compiled.name} ${node}`;
    let limit = this.limits.get(key);
    if (!limit) {
      limit = new NodeLimit(most);
      this.limits.set(key, limit);
    }
    limit.most = most;
    return limit;
  }

  private armOf(name: string, { generation = 1 }: BoundPipeline): Deployment {
    const version = String(generation);
    return {
      target: { deployment: idOf(name), version: generation, processing: { builtin: 'passthrough', options: {} }, ...noModel }, // biome-ignore format: one row reads better
      processing: nothing,
      upstreams: [],
      gauge: { inFlight: 0, servers: [] },
      stats: this.deployments.statsOf(name, version, 'pipeline'),
      replyLines: armLines(version, 'pipeline'),
    };
  }
}
