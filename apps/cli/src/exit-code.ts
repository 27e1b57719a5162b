import type { ErrorCode } from '@perch/contracts';

/** 0 done, 1 failed, 2 wrong use, 3 not found, 4 conflict, 5 not allowed, 6 unreachable, 7 timed out. */
export const exitCodes: Record<ErrorCode, number> = {
  invalid: 2,
  not_available_yet: 2,
  too_large: 2,
  unsupported_media_type: 2,
  not_found: 3,
  conflict: 4,
  precondition_failed: 4,
  unauthenticated: 5,
  forbidden: 5,
  unavailable: 6,
  timeout: 7,
  rate_limited: 1,
  integrity: 1,
  upstream: 1,
  module: 1,
  cancelled: 1,
  no_space: 1,
  internal: 1,
};

export const wrongUse = 2;

/** By the error's code, read without importing its class: `perch --help` must not load it. */
export function exitCodeOf(error: unknown): number {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && Object.hasOwn(exitCodes, code) ? exitCodes[code as ErrorCode] : 1;
}
