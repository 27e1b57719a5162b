import { AppError, type ErrorCode } from '@perch/contracts';

/**
 * What went wrong at the model server, told apart where its status alone cannot: UNAVAILABLE and 503 stand for a model
 * that is not ready, a full queue, a restricted API, a server that stops, and no connection at all.
 */
export const faultKinds = [
  'unknown_model', // also an unknown version, and a model none of whose versions is ready
  'not_ready',
  'overloaded',
  'queue_timeout',
  'restricted',
  'stopping',
  'connection',
  'deadline',
  'cancelled',
  'input',
  'load', // a load was refused or failed; the text says why
  'model', // the model itself raised an error
  'unsupported',
  'other',
] as const;
export type FaultKind = (typeof faultKinds)[number];

const codeOf: Record<FaultKind, ErrorCode> = {
  unknown_model: 'not_found',
  not_ready: 'unavailable',
  overloaded: 'unavailable',
  queue_timeout: 'timeout',
  restricted: 'forbidden',
  stopping: 'unavailable',
  connection: 'unavailable',
  deadline: 'timeout',
  cancelled: 'cancelled',
  input: 'invalid',
  load: 'invalid',
  model: 'upstream',
  unsupported: 'invalid',
  other: 'upstream',
};

const texts: [RegExp, FaultKind][] = [
  [/ is not at ready state/, 'not_ready'],
  [/^Request for unknown model: |^requested model '.*' is not available/, 'unknown_model'],
  [/^Model version not ready/, 'not_ready'],
  [/Exceeds maximum queue size/, 'overloaded'],
  [/Request timeout expired/, 'queue_timeout'],
  [/^This (protocol|API) is restricted/, 'restricted'],
  [/^Server (exiting|is stopping)/i, 'stopping'],
  [/^explicit model load \/ unload is not allowed/, 'unsupported'],
  [/^(load failed for model|failed to load )/, 'load'],
];

const grpcKinds: Record<number, FaultKind> = {
  1: 'cancelled',
  3: 'input',
  4: 'deadline',
  5: 'unknown_model',
  12: 'unsupported',
  13: 'model',
  14: 'connection',
};
const httpKinds: Record<number, FaultKind> = {
  400: 'input',
  403: 'restricted',
  404: 'unknown_model',
  500: 'model',
  501: 'unsupported',
  503: 'not_ready',
};

const kindByText = (text: string): FaultKind | undefined => texts.find(([pattern]) => pattern.test(text))?.[1];
export const kindOfGrpc = (code: number, text: string): FaultKind => kindByText(text) ?? grpcKinds[code] ?? 'other';
export const kindOfHttp = (status: number, text: string): FaultKind => kindByText(text) ?? httpKinds[status] ?? 'other';

/** A failure at the model server. The message keeps the server's own words behind the name of what was tried. */
export class TritonFault extends AppError {
  readonly kind: FaultKind;
  /** The server's own words, without ours in front. */
  readonly text: string;

  constructor(kind: FaultKind, tried: string, text: string, cause?: unknown) {
    super(codeOf[kind], `${tried}: ${text}`, { cause, terminal: kind === 'load' || kind === 'input' });
    this.kind = kind;
    this.text = text;
  }
}

/** Turns what grpc-js rejected with into a fault; `tried` names the call and the server, e.g. `load of m on triton 127.0.0.1:8001`. */
export function grpcFault(error: unknown, tried: string): TritonFault {
  const { code, details, message } = error as { code?: number; details?: string; message?: string };
  const text = details || message || 'no words';
  return new TritonFault(kindOfGrpc(code ?? 2, text), tried, text, error);
}

/** Turns an HTTP error answer into a fault; `body` is Triton's `{"error": "…"}` or anything else. */
export function httpFault(status: number, body: string, tried: string): TritonFault {
  let text = body.slice(0, 2_000) || `status ${status}`;
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    if (typeof error === 'string') text = error;
  } catch {
    // not JSON: the body as it stands is the best word we have
  }
  return new TritonFault(kindOfHttp(status, text), tried, text);
}
