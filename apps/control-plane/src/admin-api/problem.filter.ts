import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject } from '@nestjs/common';
import { AppError, type ErrorCode, errorCodeOf, type Problem, shownMessage } from '@perch/contracts';
import { LOGGER, type Logger } from '@perch/platform';
import { isConnectionLoss } from '@perch/platform/database';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** The one table from code to status. */
export const httpStatus: Record<ErrorCode, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  precondition_failed: 412,
  not_available_yet: 501,
  too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  integrity: 422,
  unavailable: 503,
  upstream: 502,
  timeout: 504,
  cancelled: 499,
  no_space: 507,
  internal: 500,
  module: 500,
};

const titles: Record<ErrorCode, string> = {
  module: 'A processing module failed',
  invalid: 'The request is not valid',
  unauthenticated: 'A valid key is wanted',
  forbidden: 'The key does not allow this',
  not_found: 'There is no such thing',
  conflict: 'It contradicts what exists',
  precondition_failed: 'Somebody else changed it',
  not_available_yet: 'Not available yet',
  too_large: 'Too large',
  unsupported_media_type: 'This content type is not understood',
  rate_limited: 'Too many requests',
  integrity: 'The bytes do not match their hash',
  unavailable: 'Try again later',
  upstream: 'The model server failed',
  timeout: 'It took too long',
  cancelled: 'The request was cancelled',
  no_space: 'No space left',
  internal: 'Internal error',
};

/** Faults that Nest and Fastify find before a controller is asked. */
const byStatus: Record<number, ErrorCode> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  405: 'invalid',
  408: 'timeout',
  413: 'too_large',
  415: 'unsupported_media_type',
  429: 'rate_limited',
  503: 'unavailable',
};

const statusOf = (error: unknown): number | undefined => {
  if (error instanceof HttpException) return error.getStatus();
  const { statusCode, code } = (error ?? {}) as { statusCode?: unknown; code?: unknown };
  return typeof statusCode === 'number' && String(code).startsWith('FST_') ? statusCode : undefined;
};

/** What Postgres says that is not our fault, by its code; the rest is `internal`. */
function databaseFault(error: unknown): AppError | undefined {
  const code = String((error as { driverError?: { code?: unknown } })?.driverError?.code ?? '');
  const options = { cause: error, retryAfterMs: 1_000 };
  if (isConnectionLoss(error) || code === '53300' || noConnection.test(nameAndMessage(error)))
    return new AppError('unavailable', 'the database is not reachable; try again', options);
  if (code === '42P01') return new AppError('unavailable', 'the schema is not there yet: run "perch migrate"', options);
  if (code === '57014') return new AppError('timeout', 'a query took too long; try again', options);
  if (code === '22021' || code === '22P05')
    return new AppError('invalid', 'the request holds text that cannot be kept (NUL, or half a surrogate pair)', {
      cause: error,
    });
  return undefined;
}
const noConnection =
  /CannotExecuteNotConnected|Driver not Connected|Connection terminated|timeout exceeded when trying to connect|is not established/i;
const nameAndMessage = (error: unknown) => (error instanceof Error ? `${error.name} ${error.message}` : '');

/** Anything thrown, as an `AppError`; what is not understood becomes `internal`, whose text never leaves the process. */
export function asAppError(error: unknown, route: string, contentType = 'none'): AppError {
  if (error instanceof AppError) return error;
  const fault = databaseFault(error);
  if (fault) return fault;
  const code = byStatus[statusOf(error) ?? 0];
  if (code === 'not_found') return new AppError('not_found', `there is no route ${route}`);
  if (code === 'unsupported_media_type')
    return new AppError(code, `the content type ${contentType} is not understood; send application/json`);
  if (code && error instanceof Error) return new AppError(code, error.message, { cause: error });
  return new AppError('internal', 'internal error', { cause: error });
}

/** RFC 9457 body of an error. */
export function problemOf(error: AppError, requestId: string): Problem {
  const code = errorCodeOf(error);
  const { errors, ...details } = error.details ?? {};
  return {
    type: `urn:perch:problem:${code}`,
    title: titles[code],
    status: httpStatus[code],
    code,
    detail: shownMessage(error),
    requestId,
    ...(Array.isArray(errors) ? { errors } : {}),
    ...(Object.keys(details).length > 0 ? { details } : {}),
  };
}

/** Answers any error as problem+json; what is not understood goes to the log in full. */
export function answerProblem(thrown: unknown, request: FastifyRequest, reply: FastifyReply, logger: Logger): void {
  const route = `${request.method} ${request.url.split('?')[0]}`;
  const error = asAppError(thrown, route, request.headers['content-type']?.slice(0, 80));
  if (error.code === 'internal')
    logger.error('request failed', { requestId: request.id, route: request.routeOptions?.url, error: thrown });
  if (reply.sent) return;
  if (error.retryAfterMs !== undefined) reply.header('retry-after', String(Math.ceil(error.retryAfterMs / 1_000)));
  if (error.code === 'unauthenticated') reply.header('www-authenticate', 'Bearer');
  reply
    .code(httpStatus[error.code])
    .header('content-type', 'application/problem+json')
    .send(JSON.stringify(problemOf(error, request.id)));
}

/** Every error of a controller leaves as problem+json. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(@Inject(LOGGER) private readonly logger: Logger) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    answerProblem(thrown, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>(), this.logger);
  }
}
