/**
 * Every code a part of Perch may fail with. Four tables at the edges turn a code into an HTTP status, a gRPC status,
 * a CLI exit code and a metric label; nothing in the core knows any of them.
 */
export const errorCodes = [
  'invalid', // the request is wrong: bad shape, bad name, bad state for this verb
  'unauthenticated',
  'forbidden',
  'not_found',
  'conflict', // somebody else was first, or it contradicts what exists
  'precondition_failed', // If-Match or a generation did not hold
  'not_available_yet', // understood, not built yet
  'too_large',
  'unsupported_media_type',
  'rate_limited',
  'integrity', // bytes do not match their hash
  'unavailable', // try again: a part that is needed is down or not ready
  'upstream', // the model server answered with a failure of its own
  'module', // the endpoint's processing module failed: it threw, ended, or took too long
  'timeout',
  'cancelled', // the client went away
  'no_space',
  'internal',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

export interface AppErrorOptions {
  cause?: unknown;
  /** Facts for a program: the field at fault, what was wanted. Shown to the client, so never a secret or a body. */
  details?: Record<string, unknown>;
  /** A loop must not try again by itself. */
  terminal?: boolean;
  retryAfterMs?: number;
}

/**
 * The one error type inside Perch. The message names the thing, what was wrong, what was wanted and what to do;
 * it is shown to people as it stands. Any other error is `internal`: logged in full, shown as "internal error".
 */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly details: Record<string, unknown> | undefined;
  readonly terminal: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details;
    this.terminal = options.terminal ?? false;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export const errorCodeOf = (error: unknown): ErrorCode => (error instanceof AppError ? error.code : 'internal');

/** The sentence that may leave the process. */
export const shownMessage = (error: unknown): string => (error instanceof AppError ? error.message : 'internal error');

/** For logs and reasons inside the process only. */
export const innerMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));
