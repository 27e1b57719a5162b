import type { Signature, TensorSpec, Tensors } from '@perch/contracts/plain';

/** Files of the version, and of the module, by their path in the manifest; where both have one, the module's. */
export interface FileSource {
  /** Rejects with `not_found` when the version has no such file. */
  read(path: string): Promise<Buffer>;
  list(): string[];
}

export interface ModuleFiles extends FileSource {
  has(path: string): boolean;
  text(path: string): Promise<string>;
  /** Throws `invalid` for what is no JSON. */
  json(path: string): Promise<unknown>;
  /** Names of classes: a line each, or of a .json a list, names by index, or the `id2label` of a config.json. Default labels.txt. */
  labels(path?: string): Promise<string[]>;
  /** Default tokenizer.json. Throws `invalid` for a kind that is not supported. */
  tokenizer(path?: string): Promise<TextTokenizer>;
}

/** What `load` may use: once per version and worker. `signature` holds the batch dimension where the model batches. */
export interface LoadSetup<Options> {
  options: Options;
  files: ModuleFiles;
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
  /** Milliseconds until the deadline; 0 when it has passed. */
  remainingMs(): number;
  /** Headers of the request that modules may see (`shownHeaders`), by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** This request's own, from `preprocess` to `postprocess`; gone with it. */
  readonly state: Record<string, unknown>;
  /** Into the program's log, with request id and endpoint; never a body. `fields` are cut where they are long. */
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: Record<string, unknown>): void;
  /**
   * Asks this version's model; as often as needed, also side by side. Only in `process`. Throws what the client would be
   * told: `timeout`, `unavailable`, `upstream`, `invalid`.
   */
  infer(inputs: Tensors): Promise<Tensors>;
  /**
   * Asks another endpoint of this installation through its own processing and traffic rule, with the rights of the
   * caller's key, within the caller's deadline. `body`: a JSON value, or a Buffer with its content type. Answers the JSON
   * value. Throws what a client of it would be told; `invalid` beyond 8 calls within one another.
   */
  serve(endpoint: string, body: unknown, options?: ServeOptions): Promise<unknown>;
  /** The client asked for events (`accept: text/event-stream`, or the task's own `stream` field). */
  readonly streams: boolean;
  /**
   * Sends one event ahead of the reply; a JSON value. The first one begins the reply: from then on no other version can
   * answer in this one's place, and an error ends the stream. Resolves when the client takes more. Without `streams` it
   * does nothing.
   */
  stream(event: unknown): Promise<void>;
  /**
   * One value of a metric of this endpoint: what kind it is, and its buckets, stand in the endpoint's `metrics`
   * (`perch metrics add`); of names that do not stand there sum and count are kept. Texts are for kind `enum` alone.
   */
  observe(name: string, value: number | string): void;
  count(name: string, by?: number): void;
  /** Marks this request for the rollout's guard metrics. */
  flag(name: string): void;
}

export interface ServeOptions {
  version?: number;
  /** Of a Buffer as body; default application/octet-stream. */
  contentType?: string;
  /** Less than what is left of the caller's own. */
  timeoutMs?: number;
}

/** Headers that `ctx.headers` shows; never credentials or cookies. */
export const shownHeaders: readonly string[] = [
  'accept', 'accept-language', 'content-language', 'content-type', 'user-agent', 'x-request-id', 'traceparent',
]; // biome-ignore format: one row reads better
export const isShownHeader = (name: string): boolean =>
  shownHeaders.includes(name) || name.startsWith('x-perch-input-');

export interface Preprocessed<Carry> {
  inputs: Tensors;
  /** Handed to `postprocess` of the same request as it stands; left out where there is nothing to carry. */
  carry?: Carry;
}

/**
 * One processing module. `preprocess` throws `invalid` for a body it cannot read; the message is shown to the client.
 * `postprocess` answers a JSON value, or a Buffer that is JSON text already. Hooks that are left out: `preprocess` hands
 * the body on as it is (then there must be a `process`), `process` is the one call of the model, `postprocess` answers
 * what `process` did.
 */
export interface ProcessingModule<Body, Loaded, Carry, Options, Out = Tensors> extends Partial<ModuleDeclaration> {
  /**
   * `json` (default): a JSON body is parsed, a body of another content type comes as a Buffer. `json-bytes`: a JSON body
   * comes as the Buffer it is (for modules that read big bodies themselves), any other is refused.
   */
  body?: 'json' | 'json-bytes';
  /** Fields of a body that is an object, for those that the request leaves out. */
  defaults?: Partial<Body>;
  /** Once per version and worker. Everything a call needs is in what it answers. */
  load?(setup: LoadSetup<Options>): Loaded | Promise<Loaded>;
  preprocess?(body: Body, loaded: Loaded, ctx: CallContext): Preprocessed<Carry> | Promise<Preprocessed<Carry>>;
  /** In place of the one call of the model: any work, `ctx.infer` any number of times. `inputs`: the body where there is no `preprocess`. */
  process?(inputs: Tensors, state: { loaded: Loaded; carry: Carry }, ctx: CallContext): Out | Promise<Out>;
  postprocess?(outputs: Out, state: { loaded: Loaded; carry: Carry }, ctx: CallContext): unknown;
  /** When the version retires and no call runs on it any more; awaited for 10 s at most. */
  unload?(loaded: Loaded): void | Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: a module's own types meet only inside the module
export type AnyModule = ProcessingModule<any, any, any, any, any>;

/** What a module says of itself: its task, and the tensors it takes and answers over `/v2` in place of the model's. */
export interface ModuleDeclaration {
  task?: string;
  inputs?: TensorSpec[];
  outputs?: TensorSpec[];
}

/** Gives a module its types: body, what `load` answered, what is carried from `preprocess` to `postprocess`. */
export function defineProcessing<Body, Loaded, Carry, Options = Record<string, unknown>, Out = Tensors>(
  module: ProcessingModule<Body, Loaded, Carry, Options, Out>,
): ProcessingModule<Body, Loaded, Carry, Options, Out> {
  return module;
}

export type Padding = 'longest' | { to: number } | { multipleOf: number };

export interface EncodeOptions {
  /** Tokens of one text or pair, special tokens included; default 256. */
  maxTokens?: number;
  /** Default `truncate`; `refuse` throws `invalid` with the text's place in the list. */
  overlong?: 'truncate' | 'refuse';
  /** Default `longest`. */
  padding?: Padding;
  /** Default: what the tokenizer.json says, else `right`. */
  paddingSide?: 'left' | 'right';
  /** Which end of a text is cut. Default: what the tokenizer.json says, else `right`. */
  truncationSide?: 'left' | 'right';
  /** Which text of a pair is cut; default `longest-first`: always the one that is longer at the time. */
  truncation?: 'longest-first' | 'first' | 'second';
  /** False leaves out the tokens that stand around every text, `[CLS]` and `[SEP]` for example; default true. */
  specialTokens?: boolean;
}

/**
 * Token ids of several texts, row-major; `shape` = [texts, tokens]; `mask` is 1 for a token, 0 for padding; `types` is 0
 * for the first text of a pair and 1 for the second, as the tokenizer's post-processor says.
 */
export interface TokenBatch {
  ids: Int32Array;
  mask: Int32Array;
  types: Int32Array;
  shape: [number, number];
}

export interface TextDecodeOptions {
  /** Leaves out special tokens such as `[SEP]` or `<|endoftext|>`; default true. */
  skipSpecial?: boolean;
}

/** Text of ids that come one by one. */
export interface TextDecoding {
  /** What this id adds to the text; never half a character: `''` until the rest of it has come. */
  push(id: number): string;
  /** What was held back; bytes that are no character become U+FFFD. */
  finish(): string;
}

/** One text, or a pair of texts that the model reads together. */
export type TextOrPair = string | readonly [string, string];

/** A tokenizer.json, ready to use. */
export interface TextTokenizer {
  readonly padId: number;
  /** Ids are below it. */
  readonly vocabularySize: number;
  /** The id of exactly this token, `'<|endoftext|>'` for example. */
  tokenId(token: string): number | undefined;
  /** Ids of one text, at most `maxTokens`, special tokens included and kept when the text is cut. */
  encode(text: TextOrPair, options?: EncodeOptions): Int32Array;
  encodeBatch(texts: readonly TextOrPair[], options?: EncodeOptions): TokenBatch;
  /** Ids outside the vocabulary are left out. */
  decode(ids: ArrayLike<number>, options?: TextDecodeOptions): string;
  decodeStream(options?: TextDecodeOptions): TextDecoding;
}
