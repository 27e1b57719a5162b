import { shownMessage } from '@perch/contracts';
import { withTimeout } from './timing.ts';

export interface HealthReport {
  ready: boolean;
  checks: Record<string, { up: boolean; reason?: string }>;
}

/** A check resolves to undefined when all is well, else to the reason in words. */
export type HealthCheck = () => Promise<string | undefined> | string | undefined;

/** Readiness of a program: all of its named checks. Liveness is that it answers at all. */
export class Health {
  private readonly checks = new Map<string, HealthCheck>();

  add(name: string, check: HealthCheck): void {
    this.checks.set(name, check);
  }

  async report(timeoutMs = 2_000): Promise<HealthReport> {
    const results = await Promise.all(
      [...this.checks].map(async ([name, check]) => {
        const reason = await withTimeout(Promise.resolve().then(check), timeoutMs, `health check ${name}`).catch(
          shownMessage,
        );
        return [name, reason === undefined ? { up: true } : { up: false, reason }] as const;
      }),
    );
    return { ready: results.every(([, result]) => result.up), checks: Object.fromEntries(results) };
  }
}
