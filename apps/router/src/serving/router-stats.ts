import { errorCodeOf } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { Call } from './call.ts';
import type { ArmStats } from './request-stats.ts';

/** Failures: counted by code, and logged where they are ours. */
export class RouterStats {
  /** Requests refused before an arm was chosen, by code. */
  readonly refusals = new Map<string, number>();
  private readonly logger: Logger;

  constructor(logger: Logger) {
    this.logger = logger;
  }

  countRefusal(error: unknown): void {
    const code = errorCodeOf(error);
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
    if (code === 'internal') this.logger.error('request failed', { error });
  }

  countFailure(error: unknown, stats: ArmStats | undefined, call: Call, durationMs: number) {
    if (!stats) return this.countRefusal(error);
    stats.count(errorCodeOf(error), durationMs);
    this.logInternal(error, call);
  }

  /** A fault of ours or of a module's is logged, also where the client never hears of it. */
  logInternal(error: unknown, { requestId, endpoint }: Call): void {
    if (errorCodeOf(error) === 'internal') this.logger.error('request failed', { error, requestId, endpoint });
  }
}
