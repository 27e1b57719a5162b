import { z } from 'zod';
import { endpointMetrics } from './endpoint-metrics.schema.ts';
import { engineSpec } from './engine.schema.ts';
import { modelSource } from './external.schema.ts';
import { endpointName, modelName, poolName, projectName, serverLabels, tag, versionNumber } from './names.schema.ts';
import { isolation, processingSpec } from './processing-spec.schema.ts';
import { policyReference } from './rollout-policy.schema.ts';

/** Auto-update rule: which versions of the model this endpoint serves; newest = highest number. */
export const versionSelect = z
  .strictObject({
    tags: z.array(tag).max(32).default([]),
    tagMatch: z.enum(['any', 'all']).default('all'),
    published: z.boolean().default(true),
    /** Only these numbers. Left out: any. */
    versions: z.array(versionNumber).min(1).max(64).optional(),
  })
  .meta({ id: 'VersionSelect' });
export type VersionSelect = z.infer<typeof versionSelect>;

/** Either one `version`, or a rule (`select`, the default rule when both are left out). */
export const endpointModel = z
  .strictObject({
    project: projectName,
    name: modelName,
    version: versionNumber.optional(),
    select: versionSelect.optional(),
    maxVersions: z.number().int().min(1).max(64).optional(),
    /** Served from what a Triton without an agent holds, not from the registry: `<server or pool>/<Triton model>`. */
    source: modelSource.optional(),
    /** There is none: a module does all the work (`engine.platform: custom`), and its number is the version. */
    none: z.literal(true).optional(),
  })
  .superRefine((value, ctx) => {
    const besides = (['version', 'select', 'maxVersions', 'source'] as const).find((key) => value[key] !== undefined);
    if (value.none && besides)
      ctx.addIssue({ code: 'custom', path: [besides], message: 'has no meaning where there is no model (none)' });
    if (value.version !== undefined && (value.select || value.maxVersions !== undefined))
      ctx.addIssue({
        code: 'custom',
        path: ['version'],
        message: 'give either one version or a rule (select, maxVersions), not both',
      });
  })
  .meta({ id: 'EndpointModel' });
export type EndpointModel = z.infer<typeof endpointModel>;

const weight = z.number().min(0).max(1_000_000);
const notAllZero = (values: readonly number[]) => values.some((value) => value > 0);

export const traffic = z
  .strictObject({
    mode: z.enum(['newest', 'weighted', 'progressive']).default('newest'),
    weights: z
      .record(z.string().regex(/^[1-9][0-9]{0,9}$/, 'a weight is keyed by a version number'), weight)
      .optional(),
    newestFirst: z.array(weight).min(1).max(64).optional(),
    /** Of the rollouts that mode progressive makes. */
    policy: policyReference.optional(),
    sticky: z.strictObject({ header: z.string().min(1).max(128) }).optional(),
  })
  .superRefine((value, ctx) => {
    const fault = (path: string, message: string) => ctx.addIssue({ code: 'custom', path: [path], message });
    if (value.mode === 'weighted' && !value.weights === !value.newestFirst)
      fault('mode', 'mode weighted wants either weights or newestFirst');
    if (value.mode !== 'weighted' && (value.weights || value.newestFirst)) fault('mode', 'weights want mode weighted');
    if (value.mode !== 'progressive' && value.policy) fault('policy', 'a policy wants mode progressive');
    if (value.weights && !notAllZero(Object.values(value.weights)))
      fault('weights', 'at least one weight must be above zero');
    if (value.newestFirst && !notAllZero(value.newestFirst))
      fault('newestFirst', 'at least one weight must be above zero');
  })
  .meta({ id: 'Traffic' });
export type Traffic = z.infer<typeof traffic>;

export const endpointSpec = z
  .strictObject({
    kind: z.literal('Endpoint').default('Endpoint'),
    name: endpointName,
    model: endpointModel,
    engine: engineSpec.default({}),
    /** Left out: what the version carries, else `passthrough`. */
    processing: processingSpec.optional(),
    fleet: z
      .strictObject({
        pool: poolName.default('default'),
        /** Only servers of the pool with all of these labels. Absent: any. */
        labels: serverLabels.optional(),
        replicas: z.number().int().min(1).max(256).default(1),
        /** A version serves from so many servers on, and no drain or move goes below it; never more than `replicas`. */
        minReplicas: z.number().int().min(1).max(256).default(1),
      })
      .superRefine((value, ctx) => {
        if (value.minReplicas > value.replicas)
          ctx.addIssue({ code: 'custom', path: ['minReplicas'], message: `wants at most replicas ${value.replicas}` });
      })
      .prefault({}),
    traffic: traffic.prefault({}),
    limits: z
      .strictObject({
        timeoutMs: z.number().int().min(1).max(3_600_000).default(60_000),
        maxBodyBytes: z.number().int().min(1).max(1_073_741_824).default(67_108_864),
        concurrency: z.union([z.literal('auto'), z.number().int().min(1).max(100_000)]).optional(),
        rateLimitPerKey: z.number().min(0.001).optional(),
      })
      .prefault({}),
    access: z.strictObject({ inference: z.enum(['key', 'public']).default('key') }).prefault({}),
    slo: z
      .strictObject({ latencyMs: z.number().positive().optional(), errorRate: z.number().min(0).max(1).optional() })
      .optional(),
    /** Values of its requests that are counted. */
    metrics: endpointMetrics.optional(),
    idempotent: z.boolean().default(true),
    /** Nothing of it is served until it is started again; the spec and its history stay. */
    stopped: z.boolean().default(false),
    description: z.string().max(4_000).default(''),
  })
  .meta({ id: 'EndpointSpec' });
export type EndpointSpec = z.infer<typeof endpointSpec>;
export type EndpointSpecInput = z.input<typeof endpointSpec>;

export const deploymentStates = ['pending', 'placing', 'loading', 'ready', 'draining', 'retired', 'failed'] as const;
export const deploymentState = z.enum(deploymentStates);
export type DeploymentState = z.infer<typeof deploymentState>;

export const deployment = z
  .object({
    id: z.string(),
    version: z.number().int(),
    tritonModel: z.string(),
    digest: z.string(),
    state: deploymentState,
    reason: z.string().nullable(),
    since: z.string(),
    /** What it runs: a built-in, or a module by number with where it runs. Absent: it could not be deployed. */
    processing: z
      .object({ builtin: z.string().optional(), module: z.string().optional(), isolation: isolation.optional() })
      .optional(),
    /** There is no model: its module does all the work, and `servers` is empty. */
    modelless: z.literal(true).optional(),
    /** `state`: what the server says of the model, else its presence; the rest is told of one endpoint alone, not in lists. */
    servers: z.array(
      z.object({
        server: z.string(),
        state: z.string(),
        reason: z.string().nullable(),
        tritonModel: z.string().optional(),
        /** Ways to run it that failed there for good before this one, with the model server's words; absent = none. */
        earlier: z.array(z.object({ tritonModel: z.string(), reason: z.string() })).optional(),
        wanted: z.enum(['held', 'leaving']).optional(),
        since: z.string().nullable().optional(),
        /** What the model server grew by when the model was loaded alone; null: not measured. */
        memoryBytes: z.number().nullable().optional(),
        /** What has to come about next, and by whom; null: nothing. */
        waitsFor: z.string().nullable().optional(),
      }),
    ),
    weightPercent: z.number(),
    /** In the rollouts of a progressive endpoint; `kept`: loaded for a rollback. Absent: none, as of any other endpoint. */
    role: z.enum(['stable', 'candidate', 'kept']).optional(),
  })
  .meta({ id: 'Deployment' });
export type Deployment = z.infer<typeof deployment>;

/** What an endpoint shows: a phase, a reason code, and a sentence for a person. */
export const endpointStatus = z
  .object({
    phase: z.enum(['ready', 'progressing', 'blocked', 'invalid']),
    reason: z.string(),
    message: z.string(),
    generationSeen: z.number().int(),
    servingVersions: z.array(z.number().int()),
    nextVersion: z.number().int().nullable(),
  })
  .meta({ id: 'EndpointStatus' });
export type EndpointStatus = z.infer<typeof endpointStatus>;

export const endpoint = z
  .object({
    name: endpointName,
    generation: z.number().int(),
    spec: endpointSpec,
    status: endpointStatus,
    deployments: z.array(deployment),
    /** Who holds the automatic updates of a progressive endpoint; absent = nobody. */
    updatesHeldBy: z.string().optional(),
    updatedAt: z.string(),
    updatedBy: z.string(),
  })
  .meta({ id: 'Endpoint' });
export type Endpoint = z.infer<typeof endpoint>;

export const endpointGeneration = z
  .object({
    generation: z.number().int(),
    spec: endpointSpec.nullable(),
    actor: z.string(),
    reason: z.string(),
    createdAt: z.string(),
  })
  .meta({ id: 'EndpointGeneration' });
export type EndpointGeneration = z.infer<typeof endpointGeneration>;

export const rollbackEndpoint = z
  .strictObject({ generation: z.number().int().min(1), reason: z.string().max(1_000).default('') })
  .meta({ id: 'RollbackEndpoint' });

/** `perch apply` and `perch diff`: what would change, field by field, and what follows from it. */
export const specChange = z.object({ path: z.string(), before: z.unknown(), after: z.unknown() });
export type SpecChange = z.infer<typeof specChange>;
export const applyResult = z
  .object({
    name: endpointName,
    outcome: z.enum(['created', 'updated', 'unchanged', 'would_create', 'would_update']),
    generation: z.number().int(),
    changes: z.array(specChange),
    effect: z.array(z.string()),
  })
  .meta({ id: 'ApplyResult' });
export type ApplyResult = z.infer<typeof applyResult>;
