import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { AppError, digestOf } from '@perch/contracts';
import { pause } from '@perch/platform';
import { IdempotencyStore, type Place } from './idempotency.store.ts';

export interface KeptAnswer {
  status: number;
  answer: unknown;
  /** True: done before, this is the answer of then. */
  replayed: boolean;
}

export interface IdempotencyTimes {
  leaseMs: number;
  keepMs: number;
  /** How long a second request waits for the first one. */
  waitMs: number;
}
const usualTimes: IdempotencyTimes = { leaseMs: 30_000, keepMs: 24 * 3_600_000, waitMs: 10_000 };

/** What runs once. `keep`: what of its answer may lie in the database (a secret may not); all of it when left out. */
export interface OnceWork {
  run: () => Promise<{ status: number; answer: unknown }>;
  keep?: (answer: unknown) => unknown;
}

/** A request sent twice with one key is done once; of several at once, one runs and the others get its answer. */
@Injectable()
export class IdempotencyService {
  constructor(private readonly store: IdempotencyStore) {}

  /**
   * Runs `work` unless this key has its answer already. A failure is not kept: the same key may try again.
   * Throws `conflict` when the key came with another request, or when the first request has not ended within `waitMs`.
   */
  async once(
    place: Place,
    request: unknown,
    work: OnceWork,
    times: IdempotencyTimes = usualTimes,
  ): Promise<KeptAnswer> {
    const requestHash = digestOf(request);
    const ticket = randomUUID();
    const deadline = Date.now() + times.waitMs;
    while (!(await this.store.claim(place, requestHash, ticket, times.leaseMs))) {
      const kept = await this.store.find(place);
      if (kept && kept.requestHash !== requestHash)
        throw new AppError(
          'conflict',
          `Idempotency-Key ${place.key} came before with another request; use a new key for a new request`,
        );
      if (kept?.state === 'done') return { status: kept.status!, answer: kept.answer, replayed: true };
      if (Date.now() >= deadline)
        throw new AppError(
          'conflict',
          `the first request with Idempotency-Key ${place.key} still runs; ask again later`,
          {
            retryAfterMs: 1_000,
          },
        );
      await pause(50);
    }
    return this.run(place, ticket, work, times);
  }

  sweep(): Promise<number> {
    return this.store.sweep();
  }

  private async run(
    place: Place,
    ticket: string,
    work: OnceWork,
    { leaseMs, keepMs }: IdempotencyTimes,
  ): Promise<KeptAnswer> {
    const renewing = setInterval(() => {
      this.store.renew(place, ticket, leaseMs).catch(() => undefined); // the lease then runs out: the work is over by itself
    }, leaseMs / 3);
    try {
      const { status, answer } = await work.run();
      const kept = work.keep ? work.keep(answer) : answer;
      await this.store.finish(place, ticket, status, kept, keepMs);
      return { status, answer, replayed: false };
    } catch (error) {
      await this.store.release(place, ticket).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewing);
    }
  }
}
