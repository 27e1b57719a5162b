import { z } from 'zod';
import { manifestFile } from './manifest.schema.ts';
import { sha256, versionNumber } from './names.schema.ts';
import { tensorSpec } from './tensor.schema.ts';

const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}(\/[a-z0-9][a-z0-9._-]{0,63}){0,3}$/;
export const moduleName = z
  .string()
  .regex(
    namePattern,
    'a module name is 1 to 4 segments joined by "/", each 1 to 64 of a-z 0-9 . _ - starting with a letter or digit',
  )
  .meta({ id: 'ModuleName' });

/** `name@3`, or `name` for the newest one at the time when it is written into a spec. */
export const moduleReference = z
  .string()
  .regex(
    new RegExp(`${namePattern.source.slice(0, -1)}(@[1-9][0-9]{0,9})?$`),
    'a module is given as name or name@number',
  );

export const taskName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/, 'a task is 1 to 64 of a-z 0-9 - and starts with a letter');

/** What stands between a module's faults and others: see libs/processing/README.md. */
export const isolations = ['inline', 'worker', 'process'] as const;
export const isolation = z.enum(isolations);
export type Isolation = z.infer<typeof isolation>;

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
