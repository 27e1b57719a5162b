import { AppError, type ErrorCode, innerMessage } from '@perch/contracts';

/** Triton's own codes of failure; two tables turn them into a gRPC status and an HTTP status. */
export const servingCodes = [
  'unknown',
  'internal',
  'not_found',
  'invalid_argument',
  'unavailable',
  'unsupported',
  'already_exists',
  'cancelled',
] as const;
export type ServingCode = (typeof servingCodes)[number];

export const grpcStatus: Record<ServingCode, number> = {
  unknown: 2, internal: 13, not_found: 5, invalid_argument: 3, unavailable: 14, unsupported: 12, already_exists: 6, cancelled: 1,
}; // biome-ignore format: one row reads better
export const httpStatus: Record<ServingCode, number> = {
  unknown: 400, internal: 500, not_found: 404, invalid_argument: 400, unavailable: 503, unsupported: 501, already_exists: 400, cancelled: 400,
}; // biome-ignore format: one row reads better

const appCode: Record<ServingCode, ErrorCode> = {
  unknown: 'internal',
  internal: 'upstream',
  not_found: 'not_found',
  invalid_argument: 'invalid',
  unavailable: 'unavailable',
  unsupported: 'invalid',
  already_exists: 'conflict',
  cancelled: 'cancelled',
};

/** A failure in Triton's words; the message leaves the process as it stands. */
export class ServingFault extends AppError {
  readonly serving: ServingCode;

  constructor(serving: ServingCode, text: string, cause?: unknown) {
    super(appCode[serving], text, { cause });
    this.serving = serving;
  }
}

/** Any error as a fault: our own `invalid` keeps its words, an unexpected one shows none. */
export function servingFaultOf(error: unknown): ServingFault {
  if (error instanceof ServingFault) return error;
  if (error instanceof AppError && error.code === 'invalid') return new ServingFault('invalid_argument', error.message);
  return new ServingFault('internal', 'internal error', error);
}

/** What Triton puts in front of most faults of a request. */
export const requestTag = (id: string | undefined): string => `[request id: ${id || '<id_unknown>'}] `;

/** For the program's own log; never for a client. */
export const faultCause = (fault: ServingFault): string => innerMessage(fault.cause ?? fault);
