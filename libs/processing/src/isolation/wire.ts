import type { DataType, Signature, Tensors } from '@perch/contracts/plain';

/** What runs a module in a cell (a worker thread or a process of its own) and the router tell one another. */

/** Bytes of a batch: offset and length. */
export type Place = readonly [at: number, length: number];
/** Name, type, shape, and where the bytes are. */
export type TensorRow = readonly [name: string, datatype: DataType, shape: readonly number[], place: Place];

/** How a value crosses: `tensors` by name, `bytes`, `json` text, nothing at all, or it stays where it was made. */
export type Carried =
  | { as: 'tensors'; rows: TensorRow[] }
  | { as: 'bytes'; place: Place }
  | { as: 'json'; text: string }
  | { as: 'nothing' }
  | { as: 'kept' };

export const callHooks = ['preprocess', 'process', 'postprocess'] as const;
export type CallHook = (typeof callHooks)[number];

/** An error as it crosses. `code`: of an AppError. `ref`: it came from our side and goes back as what it was. */
export interface CarriedError {
  name: string;
  message: string;
  code?: string;
  retryAfterMs?: number;
  ref?: number;
}

/** What a call knows of its request; sent with the first hook of a visit. `deadlineAtMs` is by the router's clock. */
export interface VisitFacts {
  requestId: string;
  endpoint: string;
  version: number;
  headers: Readonly<Record<string, string>>;
  streams: boolean;
  deadlineAtMs: number;
}

export interface BindMessage {
  op: 'bind';
  binding: number;
  options: unknown;
  signature: Signature;
  maxBatchSize: number;
  files: string[];
}

/** One hook of one visit. A visit is a request's way through the module, from `preprocess` to `postprocess`. */
export interface CallMessage {
  op: 'call';
  id: number;
  hook: CallHook;
  binding: number;
  visit: number;
  /** With the first hook of a visit. */
  facts?: VisitFacts;
  contentType?: string;
  value: Carried;
  /** It was in a cell that ended: to be run in a turn of its own, so that the next end tells whose fault it is. */
  alone?: true;
}

export type ToCell =
  /** Before anything else: the router's clock, and the module. */
  | { op: 'hello'; nowMs: number; label: string; bundle: Place }
  | BindMessage
  | { op: 'unbind'; binding: number }
  | CallMessage
  | { op: 'answer'; ask: number; value?: Carried; error?: CarriedError }
  | { op: 'abort'; visit: number }
  | { op: 'drop'; visit: number }
  | { op: 'ping' };

export type Ask =
  | { what: 'read'; binding: number; path: string }
  | { what: 'infer'; value: Carried }
  | { what: 'serve'; endpoint: string; value: Carried; version?: number; contentType?: string; timeoutMs?: number }
  | { what: 'stream'; value: Carried };

export type Note =
  | { what: 'observe'; name: string; value: number | string }
  | { what: 'count'; name: string; value: number }
  | { what: 'flag'; name: string }
  | { what: 'log'; level: 'debug' | 'info' | 'warn' | 'error'; message: string; fields?: string };

export type FromCell =
  /** The module is there; or why not. */
  | { op: 'ready'; hooks: string[]; error?: CarriedError }
  | { op: 'bound'; binding: number; hooks: string[]; error?: CarriedError }
  | { op: 'unbound'; binding: number; error?: CarriedError }
  | { op: 'done'; id: number; value?: Carried; error?: CarriedError }
  /** `call`: whose hook asks; 0: `load`. */
  | { op: 'ask'; ask: number; call: number; request: Ask }
  | { op: 'note'; call: number; note: Note }
  | { op: 'signal'; visit: number; call: number }
  | { op: 'pong'; offHeapBytes: number; heapBytes: number }
  /** The last words. `ran`: calls whose hooks ran in this turn, one of which may be at fault. */
  | { op: 'dying'; words: string; ran: number[] };

export const tensorsLike = (value: unknown): value is Tensors => {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Buffer.isBuffer(value)) return false;
  const all = Object.values(value);
  return all.length > 0 && all.every(isTensor);
};

const isTensor = (value: unknown): boolean => {
  const { bytes, datatype, shape } = (value ?? {}) as Record<string, unknown>;
  return bytes instanceof Uint8Array && typeof datatype === 'string' && Array.isArray(shape);
};
