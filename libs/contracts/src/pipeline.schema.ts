import { z } from 'zod';
import { boundProcessing } from './module.schema.ts';
import { endpointName, versionNumber } from './names.schema.ts';
import type { PipelineCondition, PipelineNode, PipelineSpecInput, PipelineValue } from './pipeline-document.ts';
import { pipelineFaults } from './pipeline-graph.ts';
import { isolation, moduleReference } from './processing-spec.schema.ts';

/** Names of nodes; `pipelineFaults` says what is wrong with one. */
const nodeName = z.string();

export const pipelineValue: z.ZodType<PipelineValue> = z.json() as z.ZodType<PipelineValue>;

export const pipelineCondition = z
  .strictObject({
    pick: z.string(),
    equals: z.json().optional(),
    notEquals: z.json().optional(),
    above: z.number().optional(),
    below: z.number().optional(),
    exists: z.boolean().optional(),
  })
  .meta({ id: 'PipelineCondition' }) satisfies z.ZodType<PipelineCondition>;

export const pipelineNode = z
  .strictObject({
    endpoint: endpointName.optional(),
    module: moduleReference.optional(),
    version: versionNumber.optional(),
    isolation: isolation.optional(),
    options: z.record(z.string(), z.unknown()).optional(),
    input: pipelineValue.optional(),
    after: z.array(nodeName).max(64).optional(),
    when: pipelineCondition.optional(),
    map: z.strictObject({ over: z.string(), concurrency: z.number().int().min(1).max(256).default(8) }).optional(),
    timeoutMs: z.number().int().min(1).max(3_600_000).optional(),
    fallback: z.strictObject({ value: pipelineValue }).optional(),
    concurrency: z.number().int().min(1).max(10_000).optional(),
    instances: z.number().int().min(1).max(64).optional(),
    device: z.enum(['cpu', 'gpu']).optional(),
  })
  .refine((node) => !node.endpoint !== !node.module, 'give either endpoint or module')
  .meta({ id: 'PipelineNode' }) satisfies z.ZodType<PipelineNode>;

export const pipelineSpec = z
  .strictObject({
    kind: z.literal('Pipeline'),
    name: endpointName,
    nodes: z
      .record(nodeName, pipelineNode)
      .refine((nodes) => Object.keys(nodes).length > 0, 'wants at least one node')
      .refine((nodes) => Object.keys(nodes).length <= 64, 'takes at most 64 nodes'),
    /** The reply, with picks. */
    output: pipelineValue,
    limits: z
      .strictObject({
        timeoutMs: z.number().int().min(1).max(3_600_000).default(60_000),
        maxBodyBytes: z.number().int().min(1).max(1_073_741_824).default(67_108_864),
      })
      .prefault({}),
    access: z.strictObject({ inference: z.enum(['key', 'public']).default('key') }).prefault({}),
    description: z.string().max(4_000).default(''),
  })
  .superRefine((spec, ctx) => {
    for (const { path, message } of pipelineFaults(spec))
      ctx.addIssue({ code: 'custom', path: path.split('.'), message });
  })
  .meta({ id: 'PipelineSpec' }) satisfies z.ZodType<PipelineSpecInput>;
export type PipelineSpec = z.infer<typeof pipelineSpec>;

/** As routers run it: checked, modules bound. */
export const boundPipeline = z.object({
  /** What replies call its version. */
  generation: z.number().int().optional(),
  nodes: z.record(nodeName, pipelineNode),
  output: pipelineValue,
  /** What each `module` node is bound to, by node. */
  modules: z.record(nodeName, boundProcessing),
});
export type BoundPipeline = z.infer<typeof boundPipeline>;

/** What runs a node now. */
export const pipelineNodeSight = z.object({
  node: z.string(),
  /** Nodes of one step run side by side; the first step is 1. */
  step: z.number().int(),
  /** Nodes that it waits for. */
  waits: z.array(z.string()),
  kind: z.enum(['endpoint', 'split', 'pipeline', 'module']),
  /** Of the endpoint, split or pipeline; of a module `name@number`. */
  name: z.string(),
  /** Of a module. */
  isolation: isolation.nullable(),
  /** Versions that answer it, heaviest first; none of modules and pipelines. */
  versions: z.array(
    z.object({
      version: z.number().int(),
      sharePercent: z.number(),
      /** Names of the servers that hold it. */
      servers: z.array(z.string()),
    }),
  ),
  /** Of the endpoint, as its settings say: `2 gpu`. Null: the model server decides, or it is none. */
  instances: z.string().nullable(),
  /** Why it cannot answer now; null: it can. */
  missing: z.string().nullable(),
});
export type PipelineNodeSight = z.infer<typeof pipelineNodeSight>;

export const pipeline = z
  .object({
    name: endpointName,
    generation: z.number().int(),
    spec: pipelineSpec,
    /** In the order of the steps. */
    nodes: z.array(pipelineNodeSight),
    message: z.string(),
    updatedAt: z.string(),
    updatedBy: z.string(),
  })
  .meta({ id: 'Pipeline' });
export type Pipeline = z.infer<typeof pipeline>;

export const pipelineGeneration = z
  .object({
    generation: z.number().int(),
    /** Null: its removal. */
    spec: pipelineSpec.nullable(),
    actor: z.string(),
    reason: z.string(),
    createdAt: z.string(),
  })
  .meta({ id: 'PipelineGeneration' });
export type PipelineGeneration = z.infer<typeof pipelineGeneration>;
