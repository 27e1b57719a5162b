import { AppError, innerMessage } from '@perch/contracts';
import type { CounterMetric, HistogramMetric, Metrics } from '@perch/platform';

/** Every call to an S3 server: counted, timed, and its failure put into one of our codes by HTTP status alone. */
export class S3Calls {
  private readonly calls: CounterMetric<'call' | 'outcome'> | undefined;
  private readonly seconds: HistogramMetric<'call'> | undefined;

  constructor(metrics?: Metrics) {
    this.calls = metrics?.counter('perch_store_calls_total', 'Calls to the object store by outcome.', [
      'call',
      'outcome',
    ]);
    this.seconds = metrics?.histogram('perch_store_call_duration_seconds', 'Duration of a call to the object store.', [
      'call',
    ]);
  }

  async run<T>(call: string, thing: string, send: () => Promise<T>): Promise<T> {
    const done = await this.find(call, thing, [], send);
    return done as T;
  }

  /** Undefined when the store answers one of `expected` (404: not there, 412: somebody was first). */
  async find<T>(
    call: string,
    thing: string,
    expected: readonly number[],
    send: () => Promise<T>,
  ): Promise<T | undefined> {
    const started = performance.now();
    let outcome = 'ok';
    try {
      return await send();
    } catch (error) {
      const status = statusOf(error);
      if (status !== undefined && expected.includes(status)) return undefined;
      const fault = faultOf(status, thing, error);
      outcome = fault.code;
      throw fault;
    } finally {
      this.calls?.add({ call, outcome });
      this.seconds?.observe({ call }, (performance.now() - started) / 1_000);
    }
  }
}

const statusOf = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } })?.$metadata?.httpStatusCode;

/** Servers disagree about error names; the status is what they agree about. */
function faultOf(status: number | undefined, thing: string, cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  if (status === 400) return new AppError('integrity', `${thing}: the store refused its bytes (400)`, { cause });
  if (status === 401 || status === 403)
    return new AppError(
      'unavailable',
      `${thing}: the store refuses our credentials (${status}); check the S3 settings`,
      {
        cause,
      },
    );
  if (status === 404) return new AppError('not_found', `${thing} is not in the store`, { cause });
  if (status === 416) return new AppError('invalid', `${thing}: the range lies outside of it`, { cause });
  if (status === 507) return new AppError('no_space', `${thing}: the store has no space left`, { cause });
  const reason = status === undefined ? innerMessage(cause).slice(0, 200) : `status ${status}`;
  return new AppError('unavailable', `${thing}: the object store did not do it (${reason}); try again`, { cause });
}

/** Signed URLs count in whole seconds, and S3 allows a week. */
export const secondsUntil = (at: Date, nowMs = Date.now()): number =>
  Math.min(604_800, Math.max(1, Math.floor((at.getTime() - nowMs) / 1_000)));

export const base64OfHex = (hex: string): string => Buffer.from(hex, 'hex').toString('base64');

/** Undefined for a hash of hashes (`…-3`), which says nothing about the whole. */
export function hexOfBase64(text: string | undefined): string | undefined {
  const bytes = Buffer.from(text ?? '', 'base64');
  return text && !text.includes('-') && bytes.length === 32 ? bytes.toString('hex') : undefined;
}
