import { z } from 'zod';
import { downloadUrl } from './model.schema.ts';
import { endpointName, modelName, projectName } from './names.schema.ts';

/** `POST /api/v1/configs/read`: texts of `config.pbtxt` by any name the caller likes to have in the answer. */
export const readConfigs = z
  .strictObject({
    texts: z
      .record(z.string().min(1).max(512), z.string().max(262_144))
      .refine((texts) => Object.keys(texts).length <= 100, 'at most 100 texts at once'),
  })
  .meta({ id: 'ReadConfigs' });
export type ReadConfigs = z.infer<typeof readConfigs>;

/** What a text says, as Triton reads it. */
export const configFacts = z
  .object({
    name: z.string().nullable(),
    platform: z.string().nullable(),
    backend: z.string().nullable(),
    /** Models that an ensemble steps into (version -1: the newest); null: it is no ensemble. */
    steps: z.array(z.object({ model: z.string(), version: z.number().int() })).nullable(),
    /** Which version folders Triton would serve; null: the newest one. */
    versionPolicy: z
      .object({
        kind: z.enum(['latest', 'all', 'specific']),
        count: z.number().int(),
        versions: z.array(z.number().int()),
      })
      .nullable(),
    parameters: z.record(z.string(), z.string()),
  })
  .meta({ id: 'ConfigFacts' });
export type ConfigFacts = z.infer<typeof configFacts>;

/** By the names of the request: what the text says, or why it cannot be read (line and column of the first fault). */
export const configsRead = z
  .object({
    configs: z.record(z.string(), z.object({ facts: configFacts.nullable(), fault: z.string().nullable() })),
  })
  .meta({ id: 'ConfigsRead' });
export type ConfigsRead = z.infer<typeof configsRead>;

/** One model folder of a Triton repository: files by their paths below it, and the text of its config.pbtxt. */
export const exportedModel = z
  .object({
    name: z.string(),
    /** The one that the endpoint serves; others are what it needs. */
    served: z.boolean(),
    /** Its version folder, which may be empty (ensembles). */
    version: z.number().int(),
    /** Null: the version brought none, and Triton completes it by itself. */
    config: z.string().nullable(),
    files: z.array(downloadUrl),
  })
  .meta({ id: 'ExportedModel' });
export type ExportedModel = z.infer<typeof exportedModel>;

/** `GET /api/v1/endpoints/:endpoint/export`: all that a Triton without Perch needs to serve one version of it. */
export const endpointExport = z
  .object({
    endpoint: endpointName,
    project: projectName,
    model: modelName,
    version: z.number().int(),
    models: z.array(exportedModel),
    backends: z.array(z.string()),
    gpu: z.boolean(),
    /** What the router does before and after the model, and the files it opens: no part of a Triton repository. */
    processing: z.object({
      builtin: z.string().optional(),
      /** `name@3`; its own files lie below `module/`. */
      module: z.string().optional(),
      files: z.array(downloadUrl),
    }),
  })
  .meta({ id: 'EndpointExport' });
export type EndpointExport = z.infer<typeof endpointExport>;
