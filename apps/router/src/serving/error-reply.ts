import { AppError, type ErrorCode, errorCodeOf, shownMessage } from '@perch/contracts';
import type { HttpReply } from '../http1/index.ts';
import { openAiError } from '../openai/openai-error.ts';

/** The one table from codes to statuses of the inference paths. */
export const statusOf: Record<ErrorCode, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  precondition_failed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  cancelled: 499,
  internal: 500,
  module: 500,
  not_available_yet: 501,
  upstream: 502,
  integrity: 502,
  unavailable: 503,
  no_space: 503,
  timeout: 504,
};

export type ErrorShape = 'serve' | 'oip' | 'openai';

function bodyOf(error: unknown, shape: ErrorShape, requestId: string): object {
  if (shape === 'openai') return openAiError(error);
  const message = shownMessage(error);
  return shape === 'oip' ? { error: message } : { error: { code: errorCodeOf(error), message, requestId } };
}

/** `lines`: header lines that say which request and arm this was. */
export function errorReply(error: unknown, shape: ErrorShape, requestId: string, lines: string): HttpReply {
  const code = errorCodeOf(error);
  let headerLines = lines;
  if (error instanceof AppError && (code === 'unavailable' || code === 'rate_limited'))
    headerLines += `retry-after: ${Math.max(1, Math.ceil((error.retryAfterMs ?? 1_000) / 1_000))}\r\n`;
  if (code === 'unauthenticated') headerLines += 'www-authenticate: Bearer\r\n';
  return {
    status: statusOf[code],
    contentType: 'application/json',
    headerLines,
    body: JSON.stringify(bodyOf(error, shape, requestId)),
  };
}
