import { z } from 'zod';
import { documentAnswer, documentHead } from './document.schema.ts';
import { endpointMetrics } from './endpoint-metrics.schema.ts';
import { routeRollout, workerEvidence } from './evidence.schema.ts';
import { boundProcessing } from './module.schema.ts';
import { endpointName, sha256 } from './names.schema.ts';
import { boundPipeline } from './pipeline.schema.ts';
import { tensorSpec } from './tensor.schema.ts';

/** One version of an endpoint that every server below has proved ready. */
export const routeTarget = z.object({
  deployment: z.string(),
  /** Of a split: the endpoint whose deployment this is. Absent = the route's own. */
  endpoint: endpointName.optional(),
  /** Loaded because a split names this version and the endpoint's rule does not want it: only that split sends to it. */
  named: z.literal(true).optional(),
  version: z.number().int(),
  tritonModel: z.string(),
  /** Servers that hold another format of it under another name; absent = all hold `tritonModel`. */
  models: z.record(z.string(), z.string()).optional(),
  /** Version to ask for where the server was not loaded by us; absent = the one it has. */
  tritonVersion: z.string().optional(),
  /** Ids in `servers`; at least one, but for a target that has no model (`modelless`). */
  servers: z.array(z.string()),
  /** No server is asked: the module's `process` does all the work. */
  modelless: z.literal(true).optional(),
  maxBatchSize: z.number().int(),
  inputs: z.array(tensorSpec),
  outputs: z.array(tensorSpec),
  processing: boundProcessing,
  /** Files of the version that processing may open (never model weights), by path. */
  files: z.array(z.object({ path: z.string(), sha256, size: z.number().int() })),
});
export type RouteTarget = z.infer<typeof routeTarget>;

export const route = z.object({
  /** Share of each deployment id, adding to 1 (within 1e-9); targets without an arm are reached by pinning only. */
  arms: z.array(z.object({ deployment: z.string(), share: z.number().min(0).max(1) })),
  targets: z.array(routeTarget),
  access: z.enum(['key', 'public']),
  timeoutMs: z.number().int(),
  maxBodyBytes: z.number().int(),
  idempotent: z.boolean(),
  /** A person stopped it: requests are told so. Absent = no. */
  stopped: z.boolean().optional(),
  /** One user stays on one arm: by hash of (salt, this header's value). Absent: each request is drawn by itself. */
  sticky: z.object({ header: z.string(), salt: z.string() }).optional(),
  /** A candidate is on trial: `arms` holds its share, which this says how to judge. Absent: none is. */
  rollout: routeRollout.optional(),
  metrics: endpointMetrics.optional(),
  /** Answered by running this graph over other endpoints and modules; then there are no targets. */
  pipeline: boundPipeline.optional(),
});
export type Route = z.infer<typeof route>;

/** `http` and `grpc` are `host:port`. */
export const tableServer = z.object({ http: z.string(), grpc: z.string() });
export type TableServer = z.infer<typeof tableServer>;

/** SHA-256 of a key's secret text, and the endpoints it may call: exact names or prefixes ending in `/*`; empty = all. */
export const tableKey = z.object({ hash: sha256, endpoints: z.array(z.string()) });
export type TableKey = z.infer<typeof tableKey>;

/** The whole snapshot that routers serve from. */
export const routingTable = z.object({
  ...documentHead,
  publishedAt: z.string(),
  /** Live routers, for limits that are per process. */
  routers: z.number().int().min(0),
  endpoints: z.record(endpointName, route),
  servers: z.record(z.string(), tableServer),
  keys: z.record(z.string(), tableKey),
});
export type RoutingTable = z.infer<typeof routingTable>;
export const tableSections = ['endpoints', 'servers', 'keys'] as const;

export const routingTableAnswer = documentAnswer(routingTable);
export type RoutingTableAnswer = z.infer<typeof routingTableAnswer>;

/** Upper bounds of the latency buckets in milliseconds; one more bucket holds what took longer. */
export const latencyBoundsMs = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 20_000, 60_000,
] as const; // biome-ignore format: one row reads better

/** What one router counted for one version of one endpoint. Summable, replaceable, never counted twice. */
export const armStats = z.object({
  requests: z.number().int(),
  /** Answers of 5xx, of transport and of time-outs; what the client did wrong is none. */
  errors: z.number().int(),
  retries: z.number().int(),
  /** One count a bucket of `latencyBoundsMs`, plus one. */
  latency: z.array(z.number().int()),
});
export type ArmStats = z.infer<typeof armStats>;

/**
 * `PUT /internal/v1/routers/:id/report`, each second, and with evidence alone between two of them. `report` is left out while its hash is the one last accepted.
 * `revision` is the lowest one among the router's worker processes.
 */
export const routerReport = z.object({
  bootId: z.string(),
  hash: z.string(),
  report: z
    .object({
      lineage: z.string().nullable(),
      revision: z.number().int(),
      /** Requests still running on deployments that the table in force no longer holds; absent = none. */
      inFlight: z.record(z.string(), z.number().int()),
      /**
       * Requests still running that may be sent to a server which the table in force no longer lists for their
       * deployment, by `<deployment> <server>`. Absent: this router does not tell.
       */
      unlisted: z.record(z.string(), z.number().int()).optional(),
      /** Deployments this router cannot serve (its processing did not load), with the reason. */
      problems: z.record(z.string(), z.string()),
      /** Deployments whose processing takes its time to load here, and has not failed; absent = none. */
      loading: z.record(z.string(), z.string()).optional(),
      held: z.boolean(),
    })
    .optional(),
  /**
   * Counts since `bootId` began, by endpoint and version: only those that changed since they were last accepted, and not
   * covered by `hash`, so that a busy endpoint resends neither the report nor the counts of the others.
   */
  stats: z.record(z.string(), z.record(z.string(), armStats)).optional(),
  /** Evidence of rollouts that changed since it was last accepted; at least as often as anything of it changes, each half second. */
  evidence: z.array(workerEvidence).max(10_000).optional(),
});
export type RouterReport = z.infer<typeof routerReport>;
/** `needReport`: send the body with the next report. `forgotten`: enrol again. */
export const reportAnswer = z.object({ needReport: z.boolean() });

/** `fleet routers`: what the router reported last; `revision` null: it has not reported yet. */
export const router = z
  .object({
    id: z.string(),
    name: z.string(),
    live: z.boolean(),
    lastSeenAt: z.string().nullable(),
    lineage: z.string().nullable(),
    revision: z.number().int().nullable(),
    held: z.boolean(),
    inFlight: z.record(z.string(), z.number().int()),
    problems: z.record(z.string(), z.string()),
    loading: z.record(z.string(), z.string()).optional(),
  })
  .meta({ id: 'Router' });
export type Router = z.infer<typeof router>;
