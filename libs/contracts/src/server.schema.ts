import { z } from 'zod';
import { documentAnswer, documentHead } from './document.schema.ts';
import { resolvedEngine } from './engine.schema.ts';
import { externalView } from './external.schema.ts';
import { pathFault } from './manifest.schema.ts';
import { poolName, sha256 } from './names.schema.ts';
import { tensorSpec } from './tensor.schema.ts';

const safePath = z.string().refine((path) => pathFault(path) === undefined, 'unsafe path');

/** One Triton model a server is to hold. Files are laid out below `<repository>/<name>/`; config.pbtxt is written by the agent. */
export const desiredModel = z.object({
  files: z.array(z.object({ path: safePath, sha256, size: z.number().int() })),
  engine: resolvedEngine,
  /** Digest of (manifest, engine): the agent compares it with what it wrote, and never edits a model in place. */
  digest: z.string(),
  /** Names in the same document that must be READY before this one is loaded, and stay until it is gone. Absent = none. */
  needs: z.array(z.string()).optional(),
  /** Its memory on this kind of device is not known yet: loaded alone, off the serving path, and measured. */
  measure: z.boolean().optional(),
});
export type DesiredModel = z.infer<typeof desiredModel>;

/** `GET /internal/v1/servers/:id/desired`: everything one server should hold, by Triton model name. */
export const desiredServer = z.object({ ...documentHead, models: z.record(z.string(), desiredModel) });
export type DesiredServer = z.infer<typeof desiredServer>;
export const desiredAnswer = documentAnswer(desiredServer);
export type DesiredAnswer = z.infer<typeof desiredAnswer>;

export const observedStates = [
  'pulling',
  'staging',
  'loading',
  'warming',
  'ready',
  'failed',
  'stuck',
  'unloading',
] as const;
export const observedState = z.enum(observedStates);
export type ObservedState = z.infer<typeof observedState>;

export const observedModel = z.object({
  state: observedState,
  /** Triton's own words, or ours where Triton has none. */
  reason: z.string().nullable(),
  since: z.string(),
  /** From the model server's own metadata once ready; shapes hold the batch dimension. */
  inputs: z.array(tensorSpec).optional(),
  outputs: z.array(tensorSpec).optional(),
  maxBatchSize: z.number().int().optional(),
  /** What the model server grew by when this model was loaded alone; absent: not measured. */
  memory: z.object({ ramBytes: z.number(), gpuBytes: z.record(z.string(), z.number()) }).optional(),
});
export type ObservedModel = z.infer<typeof observedModel>;

/** What a server is, as far as placement looks at it. Null: the agent could not find out; then nothing is ruled out by it. */
export const serverFacts = z.object({
  /** Machine that it runs on: replicas are spread over hosts. */
  host: z.string(),
  supervised: z.boolean(),
  backends: z.array(z.string()).nullable(),
  tensorrt: z.string().nullable(),
  onnxruntime: z.string().nullable(),
  gpus: z.array(
    z.object({
      uuid: z.string(),
      name: z.string().nullable(),
      /** `major.minor` */
      computeCapability: z.string().nullable(),
      totalBytes: z.number(),
    }),
  ),
  /** RAM that the model server may take; null: not known. */
  ramBytes: z.number().nullable(),
});
export type ServerFacts = z.infer<typeof serverFacts>;

/** Memory of the model server now, in steps of 64 MiB, so that its breathing is no news. GPU figures by uuid. */
export const serverUsage = z.object({ ramBytes: z.number(), gpuBytes: z.record(z.string(), z.number()) });
export type ServerUsage = z.infer<typeof serverUsage>;

/** The model server's process under supervision. */
export const supervision = z.object({
  state: z.enum(['starting', 'running', 'backing_off', 'stopping']),
  restarts: z.number().int(),
  /** How it ended last, in words for people (`killed for memory`, `exit code 1`, …). */
  lastExit: z.string().nullable(),
  /** Last lines of its console, oldest first; only after an end that nobody asked for. */
  console: z.array(z.string()),
});
export type Supervision = z.infer<typeof supervision>;

export const observedServer = z.object({
  lineage: z.string().nullable(),
  revision: z.number().int(),
  /** Removals that an unconfirmed document asked for and the agent did not do. */
  heldRemovals: z.array(z.string()),
  triton: z.object({
    live: z.boolean(),
    ready: z.boolean(),
    name: z.string(),
    version: z.string(),
    gpus: z.number().int(),
  }),
  models: z.record(z.string(), observedModel),
  disk: z.object({ freeBytes: z.number(), cacheBytes: z.number() }),
  facts: serverFacts.optional(),
  usage: serverUsage.optional(),
  supervision: supervision.optional(),
  /** The agent was told to end (a pod that terminates): its models are wanted elsewhere first. */
  leaving: z.boolean().optional(),
  /** Why it leaves, in words for people. */
  leavingReason: z.string().optional(),
  /** Where neighbours may read its cache (`http://host:port`); absent: nowhere. */
  peer: z.string().optional(),
});
export type ObservedServer = z.infer<typeof observedServer>;

/** `PUT /internal/v1/servers/:id/observed`, every 2 s and at once on change; the body, or what changed in it, only on change. */
export const observedReport = z.object({
  bootId: z.string(),
  hash: z.string(),
  observed: observedServer.optional(),
  /**
   * The state as the difference to the one with the hash `base`: models that changed (null: gone), and all the rest. Who
   * does not hold that state, or does not know patches, answers `needReport`.
   */
  patch: z
    .object({
      base: z.string(),
      observed: observedServer.omit({ models: true }),
      models: z.record(z.string(), observedModel.nullable()),
    })
    .optional(),
  /** Where requests reach the server now (`host:port`); left out: where it said when it enrolled. */
  address: z.object({ http: z.string().min(1), grpc: z.string().min(1) }).optional(),
});
export type ObservedReport = z.infer<typeof observedReport>;

/** `needReport`: send the whole state with the next one. `drained`: told while it is out of service; true: it may end. */
export const observedAnswer = z.object({ needReport: z.boolean(), drained: z.boolean().optional() });
export type ObservedAnswer = z.infer<typeof observedAnswer>;

/** `POST /internal/v1/enrol`: a join key becomes an id and a token. `previousLineage`: whose documents the caller last followed. */
export const enrol = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('server'),
    name: z.string().min(1).max(128),
    labels: z.record(z.string(), z.string()).default({}),
    http: z.string(),
    grpc: z.string(),
    previousLineage: z.string().nullable().default(null),
  }),
  z.object({
    kind: z.literal('router'),
    name: z.string().min(1).max(128),
    previousLineage: z.string().nullable().default(null),
  }),
]);
export type Enrol = z.infer<typeof enrol>;
export const enrolled = z.object({ id: z.string(), token: z.string(), pool: poolName.nullable() });
export type Enrolled = z.infer<typeof enrolled>;

/** `POST /internal/v1/blobs/urls`: documents hold hashes, never URLs. Good for 15 min; on 403 ask again and resume. */
export const blobUrlsRequest = z.object({
  hashes: z.array(sha256).min(1).max(200),
  /** Addresses in neighbours' caches are wanted as well. */
  peers: z.boolean().optional(),
});
export const blobUrls = z.object({
  urls: z.record(
    z.string(),
    z.object({ url: z.string(), size: z.number().int(), peers: z.array(z.string()).optional() }),
  ),
});
export type BlobUrls = z.infer<typeof blobUrls>;

/** `fleet servers` */
export const server = z
  .object({
    id: z.string(),
    name: z.string(),
    pool: z.string(),
    http: z.string(),
    grpc: z.string(),
    labels: z.record(z.string(), z.string()),
    live: z.boolean(),
    lastSeenAt: z.string().nullable(),
    desiredRevision: z.number().int(),
    /** New with every start of its agent; null: it has not reported yet. */
    bootId: z.string().nullable().optional(),
    observed: observedServer.nullable(),
    /** It runs without an agent. Absent: it has one. */
    external: externalView.optional(),
    /** Not in service by a person's word, or by its own (`system`). `drained`: it serves nothing and gets no request. */
    drain: z
      .object({
        since: z.string(),
        by: z.string(),
        reason: z.string(),
        /** Does not wait until its deployments are ready elsewhere; absent = it does. */
        forced: z.boolean().optional(),
        drained: z.boolean(),
        waitsFor: z.array(z.string()),
      })
      .nullable(),
  })
  .meta({ id: 'Server' });
export type Server = z.infer<typeof server>;
