import { errorCodeOf, shownMessage } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { Call } from './call.ts';
import type { ArmStats } from './request-stats.ts';

/** Of faults of modules; further ones are counted only. */
const mostLines = 10;
const perMs = 1_000;

/** Failures: counted by code, and logged where they are ours or a module's. */
export class RouterStats {
  /** Requests refused before an arm was chosen, by code. */
  readonly refusals = new Map<string, number>();
  private readonly logger: Logger;
  private lines = 0;
  private linesSince = 0;

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
    this.logFault(error, call);
  }

  /** A fault of ours or of a module's is logged, also where the client never hears of it. */
  logFault(error: unknown, { requestId, endpoint }: Pick<Call, 'requestId' | 'endpoint'>): void {
    const code = errorCodeOf(error);
    if (code === 'internal') this.logger.error('request failed', { error, requestId, endpoint });
    if (code === 'module' && this.hasRoom(performance.now()))
      this.logger.warn('module failed', { reason: shownMessage(error), requestId, endpoint });
  }

  /** A module that fails in every request is not to fill the disk. */
  private hasRoom(nowMs: number): boolean {
    if (nowMs - this.linesSince >= perMs) {
      this.linesSince = nowMs;
      this.lines = 0;
    }
    this.lines += 1;
    return this.lines <= mostLines;
  }
}
