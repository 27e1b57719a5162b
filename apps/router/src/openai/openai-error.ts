import { type ErrorCode, errorCodeOf, shownMessage } from '@perch/contracts';

const types: Partial<Record<ErrorCode, string>> = {
  unauthenticated: 'authentication_error',
  forbidden: 'permission_error',
  rate_limited: 'rate_limit_error',
  invalid: 'invalid_request_error',
  not_found: 'invalid_request_error',
  conflict: 'invalid_request_error',
  precondition_failed: 'invalid_request_error',
  too_large: 'invalid_request_error',
  unsupported_media_type: 'invalid_request_error',
};
const codes: Partial<Record<ErrorCode, string>> = { unauthenticated: 'invalid_api_key', not_found: 'model_not_found' };

/** An error in OpenAI's shape. */
export function openAiError(error: unknown) {
  const code = errorCodeOf(error);
  return {
    error: {
      message: shownMessage(error),
      type: types[code] ?? 'server_error',
      param: null,
      code: codes[code] ?? code,
    },
  };
}
