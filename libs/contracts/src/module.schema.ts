import { z } from 'zod';
import { digestOf } from './digest.ts';
import { type ManifestFile, manifestDigest, manifestFile, manifestFiles } from './manifest.schema.ts';
import { blobUpload } from './model.schema.ts';
import { sha256, versionNumber } from './names.schema.ts';
import { isolation, moduleName } from './processing-spec.schema.ts';
import { tensorSpec } from './tensor.schema.ts';

export const taskName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/, 'a task is 1 to 64 of a-z 0-9 - and starts with a letter');

/** What a module's `body` says it takes; see `ProcessingModule`. */
export const moduleBodies = ['json', 'json-bytes'] as const;

export const moduleHooks = ['load', 'preprocess', 'process', 'postprocess', 'unload'] as const;

/** What was found in a module when it was bundled, and what it declares. Part of its digest. */
export const moduleFacts = z
  .object({
    hooks: z.array(z.enum(moduleHooks)).min(1),
    body: z.enum(moduleBodies).default('json'),
    task: taskName.optional(),
    /** Tensors that it takes and answers over the Open Inference Protocol in place of the model's own. */
    inputs: z.array(tensorSpec).max(64).optional(),
    outputs: z.array(tensorSpec).max(64).optional(),
  })
  .meta({ id: 'ModuleFacts' });
export type ModuleFacts = z.infer<typeof moduleFacts>;

/** The file of a module that is run; the others are what its `load` may open. */
export const bundlePath = 'module.mjs';

/** A registered module: immutable, like a version. `digest` covers facts and files; the number is given once. */
export const processingModule = z
  .object({
    name: moduleName,
    number: versionNumber,
    digest: sha256,
    facts: moduleFacts,
    files: z.array(manifestFile),
    description: z.string(),
    createdAt: z.string(),
    createdBy: z.string(),
  })
  .meta({ id: 'ProcessingModule' });
export type ProcessingModuleRecord = z.infer<typeof processingModule>;

/** Identity of a module: what it declares and its bytes; neither name nor description. */
export const moduleDigest = (facts: ModuleFacts, files: readonly ManifestFile[]): string =>
  digestOf({ facts, files: manifestDigest(files) });

/** Sent twice: to learn what bytes are missing, and to register once they are there. */
export const registerModule = z
  .strictObject({
    facts: moduleFacts,
    /** The bundle at `bundlePath`, and what its `load` may open. */
    files: manifestFiles.refine((files) => files.some(({ path }) => path === bundlePath), {
      error: `a module holds its bundle as the file ${bundlePath}`,
    }),
    description: z.string().max(10_000).optional(),
  })
  .meta({ id: 'RegisterModule' });
export type RegisterModule = z.infer<typeof registerModule>;

/** `module`: the newest one of this name, when it is the same; then nothing is missing. */
export const moduleUpload = z
  .object({ module: processingModule.nullable(), missing: z.array(blobUpload) })
  .meta({ id: 'ModuleUpload' });
export type ModuleUpload = z.infer<typeof moduleUpload>;

/** `name`: a part of it. */
export const listModules = z.object({
  task: taskName.optional(),
  name: z.string().max(200).optional(),
  cursor: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
});
export type ListModules = z.infer<typeof listModules>;

/** A module as a deployment is bound to it: all that a router needs to run it. */
export const boundModule = z.object({
  name: moduleName,
  number: versionNumber,
  digest: sha256,
  facts: moduleFacts,
  /** The bundle at `bundlePath`, and files of the module by their path. */
  files: z.array(manifestFile),
});
export type BoundModule = z.infer<typeof boundModule>;

/** Either a built-in or a module, with options and where it runs. Absent isolation: built-ins inline, modules in workers. */
export const boundProcessing = z.object({
  builtin: z.string().optional(),
  module: boundModule.optional(),
  isolation: isolation.optional(),
  options: z.record(z.string(), z.unknown()),
});
export type BoundProcessing = z.infer<typeof boundProcessing>;
