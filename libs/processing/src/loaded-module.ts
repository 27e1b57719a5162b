import { AppError, type Signature, type Tensors } from '@perch/contracts/plain';
import { readBody } from './body.ts';
import type { AnyModule, CallContext, FileSource, LoadSetup, ModuleDeclaration, Preprocessed } from './contract.ts';
import { moduleFiles } from './module-files.ts';

export interface ModuleSetup {
  files: FileSource;
  /** Tensors as the model server declares them, batch dimension included where the model batches. */
  signature: Signature;
  maxBatchSize: number;
}

/** A module bound to one version, ready for requests. `carry` belongs to one request and is opaque. */
export interface LoadedProcessing {
  readonly declares: ModuleDeclaration;
  /** Throws `invalid`, `unsupported_media_type` or what the module threw. */
  preprocess(
    body: Buffer,
    contentType: string | undefined,
    ctx: CallContext,
  ): Preprocessed<unknown> | Promise<Preprocessed<unknown>>;
  /** In place of the one call of the model; absent: the caller makes that call. */
  process?: (inputs: Tensors, carry: unknown, ctx: CallContext) => unknown;
  /** `outputs`: what the model, or `process`, answered. A JSON value, or a Buffer that is JSON text already. */
  postprocess(outputs: unknown, carry: unknown, ctx: CallContext): unknown;
  unload(): Promise<void>;
}

/** Binds any module to a version. `options` are handed to `load` as they stand. */
export async function loadModule(
  module: AnyModule,
  options: unknown,
  { files, signature, maxBatchSize }: ModuleSetup,
): Promise<LoadedProcessing> {
  const setup: LoadSetup<unknown> = {
    options,
    signature,
    maxBatchSize,
    files: moduleFiles(files),
  };
  if (!module.preprocess && !module.process)
    throw new AppError('invalid', 'the module has neither preprocess nor process: it would hand bodies to the model as they are'); // biome-ignore format: one sentence
  const loaded: unknown = await module.load?.(setup);
  const preprocess = module.preprocess?.bind(module) ?? ((body: unknown) => ({ inputs: body as Tensors }));
  const run = module.process?.bind(module);
  return {
    declares: { task: module.task, inputs: module.inputs, outputs: module.outputs },
    preprocess(body, contentType, ctx) {
      const given = readBody(module, body, contentType);
      return given instanceof Promise
        ? given.then((value) => preprocess(value, loaded, ctx))
        : preprocess(given, loaded, ctx);
    },
    ...(run ? { process: (inputs, carry, ctx) => run(inputs, { loaded, carry }, ctx) } : {}),
    postprocess: (outputs, carry, ctx) =>
      module.postprocess ? module.postprocess(outputs, { loaded, carry }, ctx) : outputs,
    unload: async () => module.unload?.(loaded),
  };
}
