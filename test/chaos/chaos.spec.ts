import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { missingReason } from '../support/real-parts.ts';
import { ChaosRun } from './chaos-run.ts';

const env = process.env;
const seed = Number(env['PERCH_CHAOS_SEED'] ?? 1);
const totalMs = Number(env['PERCH_CHAOS_SECONDS'] ?? 120) * 1_000;
const engine = env['PERCH_CHAOS_ENGINE'] === '1' ? 'engine' : 'triton';

describe.skipIf(engine === 'triton' && missingReason('triton'))('chaos', () => {
  it(`seed ${seed}: nothing wrong, nothing failed, all in step after`, { timeout: totalMs + 300_000 }, async () => {
    const report = await new ChaosRun({ seed, totalMs, engine, perSecond: 50 }).run();
    if (env['PERCH_CHAOS_REPORT']) writeFileSync(env['PERCH_CHAOS_REPORT'], JSON.stringify(report));
    const { wrong, failed, troubles } = report;
    const first = { wrong: wrong.slice(0, 5), failed: failed.slice(0, 5), troubles: troubles.slice(0, 10) };
    expect(first, `logs: ${report.logs}`).toEqual({ wrong: [], failed: [], troubles: [] });
    expect(report.converged).toBe(true);
    expect(report.requests).toBeGreaterThan(totalMs / 100);
  });
});
