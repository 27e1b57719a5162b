import { Injectable } from '@nestjs/common';
import { AppError } from '@perch/contracts';
import { DataSource, type EntityManager, QueryFailedError } from 'typeorm';

export type Tx = EntityManager;

const codeOf = (error: unknown): string | undefined =>
  error instanceof QueryFailedError
    ? (error.driverError as { code?: string }).code
    : (error as { code?: string })?.code;

/** Postgres' "somebody else holds this" codes: serialization failure and deadlock. */
const isContention = (error: unknown): boolean => ['40001', '40P01'].includes(codeOf(error) ?? '');

/** Name of the constraint an insert or update broke (unique 23505, check 23514, foreign key 23503), or undefined. */
export function brokenConstraint(error: unknown): string | undefined {
  if (!['23505', '23514', '23503'].includes(codeOf(error) ?? '')) return undefined;
  return (error as QueryFailedError & { driverError: { constraint?: string } }).driverError.constraint;
}

/** Connection refused, cut (also in the middle of a transaction), or the server shutting down: the caller may try again. */
export function isConnectionLoss(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return (
    /^(08|57P)/.test(code) ||
    /^E(CONN|PIPE|TIMEDOUT|AI)/.test(code) ||
    /Connection terminated|AlreadyReleased|not currently accepting connections/.test(
      `${(error as Error)?.name} ${error}`,
    )
  );
}

/** A service opens the transaction; stores take it as their first parameter. Contention is tried again three times. */
@Injectable()
export class Transactions {
  constructor(private readonly source: DataSource) {}

  async run<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.source.transaction(work);
      } catch (error) {
        if (isConnectionLoss(error))
          throw new AppError('unavailable', 'database is not reachable; try again', { cause: error });
        if (!isContention(error) || attempt >= 4) throw error;
      }
    }
  }

  /** For single reads outside a transaction. */
  get manager(): EntityManager {
    return this.source.manager;
  }
}
