import type { LoggerService } from '@nestjs/common';
import { errorCodeOf } from '@perch/contracts';
import { type Logger as PinoLogger, pino } from 'pino';

export type LogFields = Record<string, unknown>;

/** JSON lines on stdout: a constant sentence and named fields, never a sentence with values in it, never a body. */
export interface Logger {
  debug(sentence: string, fields?: LogFields): void;
  info(sentence: string, fields?: LogFields): void;
  warn(sentence: string, fields?: LogFields): void;
  error(sentence: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

/** Errors become code, message and (for unexpected ones) stack; the stack stays in the log. */
function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = errorCodeOf(error);
  const cause = error.cause instanceof Error ? error.cause.message : undefined;
  return { code, message: error.message, cause, stack: code === 'internal' ? error.stack : undefined };
}

const wrap = (log: PinoLogger): Logger => ({
  debug: (sentence, fields = {}) => log.debug(fields, sentence),
  info: (sentence, fields = {}) => log.info(fields, sentence),
  warn: (sentence, fields = {}) => log.warn(fields, sentence),
  error: (sentence, fields = {}) => log.error(fields, sentence),
  child: (fields) => wrap(log.child(fields)),
});

export const createLogger = (program: string, level = 'info'): Logger =>
  wrap(
    pino({ level, base: { program }, serializers: { error: errorFields }, timestamp: pino.stdTimeFunctions.isoTime }),
  );

export const silentLogger: Logger = wrap(pino({ level: 'silent' }));

/** Nest's own lines: start-up chatter is for debugging, faults are not. */
export const nestLogger = (logger: Logger): LoggerService => ({
  log: (message: unknown) => logger.debug('nest', { message: String(message) }),
  error: (message: unknown, ...rest: unknown[]) =>
    logger.error('nest', { message: String(message), rest: rest.map(String) }),
  warn: (message: unknown) => logger.warn('nest', { message: String(message) }),
  debug: () => undefined,
  verbose: () => undefined,
});

/** Injection token of the program's logger. */
export const LOGGER = Symbol('logger');
