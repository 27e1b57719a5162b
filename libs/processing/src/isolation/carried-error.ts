import { AppError, type ErrorCode, errorCodes, innerMessage } from '@perch/contracts/plain';
import type { CarriedError } from './wire.ts';

const longest = 300;
const cut = (text: string): string => (text.length > longest ? `${text.slice(0, longest)}…` : text);

const codeOf = (error: unknown): ErrorCode | undefined => {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  return name === 'AppError' && errorCodes.includes(code as ErrorCode) ? (code as ErrorCode) : undefined;
};

/** An AppError keeps its code and words, whosever copy of the class it is of; others keep their name. */
export function carryError(error: unknown, ref?: number): CarriedError {
  const code = codeOf(error);
  const { retryAfterMs } = (error ?? {}) as { retryAfterMs?: unknown };
  return {
    name: error instanceof Error ? String(error.name) : typeof error,
    message: code ? innerMessage(error) : refusedWords(error),
    ...(code ? { code } : {}),
    ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}),
    ...(ref === undefined ? {} : { ref }),
  };
}

/** What was refused is said by what was asked for, also where something else failed because of it. */
function refusedWords(error: unknown): string {
  const { code, permission, resource, cause } = (error ?? {}) as Record<string, unknown>;
  if (code === 'ERR_ACCESS_DENIED')
    return cut(
      `${whatOf[String(permission)] ?? 'access'} was refused (${[permission, resource].filter(Boolean).join(' ')})`,
    );
  const because = cause instanceof Error ? `: ${refusedWords(cause)}` : '';
  return cut(innerMessage(error) + because);
}

const whatOf: Record<string, string> = {
  FileSystemRead: 'file access',
  FileSystemWrite: 'file access',
  Network: 'network access',
  Environment: 'environment access',
  ChildProcess: 'a process of its own',
  WorkerThreads: 'a thread of its own',
};

export function appErrorOf({ code, message, retryAfterMs }: CarriedError): AppError {
  return new AppError((code as ErrorCode) ?? 'internal', message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

/** What a client is told of an error of a module: an AppError as it stands, any other as the module's fault, by its hook. */
export function moduleError(label: string, hook: string, error: CarriedError): AppError {
  if (error.code && error.code !== 'internal') return appErrorOf(error);
  const named = error.name === 'Error' ? '' : ` ${error.name}`;
  return new AppError('module', `module ${label}: ${hook} threw${named}: ${error.message}`);
}
