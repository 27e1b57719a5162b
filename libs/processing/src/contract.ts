import type { Signature, Tensors } from '@perch/contracts';

/** Files of the version (and, later, of the module), by their path in the manifest. */
export interface FileSource {
  /** Rejects with `not_found` when the version has no such file. */
  read(path: string): Promise<Buffer>;
  list(): string[];
}

/** What `load` may use: once per version and worker. `signature` holds the batch dimension where the model batches. */
export interface LoadSetup<Options> {
  options: Options;
  files: FileSource & { tokenizer(path?: string): Promise<TextTokenizer> };
  signature: Signature;
  /** 0: the model declares no batch dimension. */
  maxBatchSize: number;
}

/** What one call may use. Names of metrics and flags are `[a-z][a-z0-9_]*`. */
export interface CallContext {
  readonly requestId: string;
  readonly endpoint: string;
  readonly version: number;
  /** Fires when the client went away or the deadline has passed. */
  readonly signal: AbortSignal;
  observe(name: string, value: number): void;
  count(name: string, by?: number): void;
  /** Marks this request for the rollout's guard metrics. */
  flag(name: string): void;
}

export interface Preprocessed<Carry> {
  inputs: Tensors;
  /** Handed to `postprocess` of the same request as it stands; left out where there is nothing to carry. */
  carry?: Carry;
}

/**
 * One pre- and postprocessing module. `preprocess` throws `invalid` for a body it cannot read; the message is shown to
 * the client. `postprocess` answers a JSON value, or a Buffer that is JSON text already.
 */
export interface ProcessingModule<Body, Loaded, Carry, Options> {
  /**
   * `json` (default): a JSON body is parsed, a body of another content type comes as a Buffer. `json-bytes`: a JSON body
   * comes as the Buffer it is (for modules that read big bodies themselves), any other is refused.
   */
  body?: 'json' | 'json-bytes';
  /** Once per version and worker. Everything a call needs is in what it answers. */
  load?(setup: LoadSetup<Options>): Loaded | Promise<Loaded>;
  preprocess(body: Body, loaded: Loaded, ctx: CallContext): Preprocessed<Carry> | Promise<Preprocessed<Carry>>;
  postprocess(outputs: Tensors, state: { loaded: Loaded; carry: Carry }, ctx: CallContext): unknown;
  unload?(loaded: Loaded): void | Promise<void>;
}

/** Gives a module its types: body, what `load` answered, what is carried from `preprocess` to `postprocess`. */
export function defineProcessing<Body, Loaded, Carry, Options = Record<string, unknown>>(
  module: ProcessingModule<Body, Loaded, Carry, Options>,
): ProcessingModule<Body, Loaded, Carry, Options> {
  return module;
}

export type Padding = 'longest' | { to: number } | { multipleOf: number };

export interface EncodeOptions {
  /** Tokens of one text, special tokens included; default 256. */
  maxTokens?: number;
  /** Default `truncate`; `refuse` throws `invalid` with the text's place in the list. */
  overlong?: 'truncate' | 'refuse';
  /** Default `longest`. */
  padding?: Padding;
}

/** Token ids of several texts, row-major; `shape` = [texts, tokens]; `mask` is 1 for a token, 0 for padding. */
export interface TokenBatch {
  ids: Int32Array;
  mask: Int32Array;
  shape: [number, number];
}

/** A tokenizer.json, ready to use. */
export interface TextTokenizer {
  readonly padId: number;
  /** Ids of one text, at most `maxTokens`, special tokens included and kept when the text is cut. */
  encode(text: string, options?: EncodeOptions): Int32Array;
  encodeBatch(texts: readonly string[], options?: EncodeOptions): TokenBatch;
}
