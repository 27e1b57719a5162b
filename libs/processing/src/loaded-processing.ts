import { AppError, type BuiltinName, parseBuiltinOptions, type Signature, type Tensors } from '@perch/contracts';
import type { CallContext, FileSource, LoadSetup, Preprocessed, ProcessingModule } from './contract.ts';
import { parseJsonBody } from './json-body.ts';
import { passthrough } from './passthrough/passthrough.ts';
import { readTokenizer } from './text/tokenizer.ts';
import { textEmbedding } from './text-embedding/text-embedding.ts';

// biome-ignore lint/suspicious/noExplicitAny: a module's own types meet only inside the module
export type AnyModule = ProcessingModule<any, any, any, any, any>;

const builtins: Record<BuiltinName, AnyModule> = { passthrough, 'text-embedding': textEmbedding };

export interface ModuleSetup {
  files: FileSource;
  /** Tensors as the model server declares them, batch dimension included where the model batches. */
  signature: Signature;
  maxBatchSize: number;
}

/** A module bound to one version, ready for requests. `carry` belongs to one request and is opaque. */
export interface LoadedProcessing {
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

/** Absent counts as JSON, as `curl -d` users expect; curl's own default is taken as JSON for the same reason. */
const isJson = (contentType: string | undefined): boolean =>
  !contentType ||
  /^\s*(application\/(json|[\w.+-]*\+json|x-www-form-urlencoded)|text\/(json|plain))\s*(;|$)/i.test(contentType);

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
    files: {
      read: (path) => files.read(path),
      list: () => files.list(),
      tokenizer: (path = 'tokenizer.json') => readTokenizer(files, path),
    },
  };
  const loaded: unknown = await module.load?.(setup);
  const preprocess = module.preprocess?.bind(module) ?? ((body: unknown) => ({ inputs: body as Tensors }));
  const run = module.process?.bind(module);
  return {
    preprocess(body, contentType, ctx) {
      if (module.body !== 'json-bytes')
        return preprocess(isJson(contentType) ? parseJsonBody(body) : body, loaded, ctx);
      if (isJson(contentType)) return preprocess(body, loaded, ctx);
      throw new AppError('unsupported_media_type', `content type ${contentType}, wanted application/json`);
    },
    ...(run ? { process: (inputs, carry, ctx) => run(inputs, { loaded, carry }, ctx) } : {}),
    postprocess: (outputs, carry, ctx) =>
      module.postprocess ? module.postprocess(outputs, { loaded, carry }, ctx) : outputs,
    unload: async () => module.unload?.(loaded),
  };
}

/**
 * Loads the built-in of an endpoint for one version.
 * Throws `invalid` naming the field for an unknown built-in or bad options, `not_available_yet` for a planned built-in,
 * `not_found` for a missing file, `invalid` when the model's tensors do not suit the built-in.
 */
export async function loadProcessing(
  setup: ModuleSetup & { builtin: string; options?: Record<string, unknown> },
): Promise<LoadedProcessing> {
  const options = parseBuiltinOptions(setup.builtin, setup.options);
  const module = builtins[setup.builtin as BuiltinName];
  if (setup.signature.inputs.length === 0 || setup.signature.outputs.length === 0)
    throw new AppError('invalid', `processing ${setup.builtin}: the model's inputs and outputs are not known`);
  return loadModule(module, options, setup);
}
