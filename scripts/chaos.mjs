/**
 * `npm run chaos`: a fleet under load while everything around it fails, seed by seed. Three model servers with agents,
 * two routers, a control plane, Postgres and an object store of their own; versions are published all the time; at the
 * end all must be in step, no answer wrong and none missing. A seed fixes which faults come when.
 *
 *   --seed N      this seed (default: one by chance, which is printed)     --seconds N   of faults a seed (120)
 *   --seeds N     so many in a row, from --seed on (1)                     --engine      on the embedded engine
 *
 * The last line is {"seeds", "requests", "wrong", "failed", "converged"}; exits 0 only when nothing was wrong.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureBuilt, root } from './install.mjs';
import { findTriton } from './real-triton.mjs';

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 999_999)) },
    seeds: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '120' },
    engine: { type: 'boolean', default: false },
  },
});
for (const name of ['seed', 'seeds', 'seconds'])
  if (!/^[1-9][0-9]{0,8}$/.test(options[name])) {
    console.error(`chaos: --${name} wants a whole number above 0, not ${JSON.stringify(options[name])}`);
    process.exit(2);
  }

function runSeed(seed, folder) {
  const report = join(folder, `${seed}.json`);
  spawnSync('npx', ['--offline', 'vitest', 'run', '--project', 'chaos', '--reporter=default'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    env: {
      ...process.env,
      PERCH_CHAOS: '1',
      PERCH_CHAOS_SEED: String(seed),
      PERCH_CHAOS_SECONDS: options.seconds,
      PERCH_CHAOS_ENGINE: options.engine ? '1' : '0',
      PERCH_CHAOS_REPORT: report,
    },
  });
  try {
    return JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return { seed, requests: 0, wrong: [], failed: [], troubles: ['it ended without a report'], converged: false };
  }
}

const triton = findTriton();
if (!options.engine && !triton.found) {
  console.error(`chaos: no real Triton: ${triton.reason}; --engine runs it on the embedded engine`);
  process.exit(1);
}
ensureBuilt();
const folder = mkdtempSync(join(tmpdir(), 'perch-chaos-reports-'));
const sum = { seeds: 0, requests: 0, wrong: 0, failed: 0, converged: true };
let lost = 0;
for (let turn = 0; turn < Number(options.seeds); turn += 1) {
  const seed = Number(options.seed) + turn;
  console.log(
    `seed ${seed}, ${options.seconds} s of faults; again with: npm run chaos -- --seed ${seed} --seconds ${options.seconds}`,
  );
  const report = runSeed(seed, folder);
  for (const words of report.skipped ?? []) console.log(`skipped: ${words}`);
  for (const words of [...report.wrong, ...report.failed, ...report.troubles].slice(0, 20)) console.log(`  ${words}`);
  const { requests, faults, published, lostWithRouter, convergedMs, latency, logs } = report;
  console.log(JSON.stringify({ seed, requests, faults, published, lostWithRouter, convergedMs, latency, logs }));
  sum.seeds += 1;
  sum.requests += requests;
  sum.wrong += report.wrong.length;
  sum.failed += report.failed.length;
  sum.converged &&= report.converged && report.troubles.length === 0;
  lost += lostWithRouter ?? 0;
}
rmSync(folder, { recursive: true, force: true });
if (lost > 0) console.log(`${lost} requests were in flight in a router that was killed, and are not counted as failed`);
console.log(JSON.stringify(sum));
process.exit(sum.wrong === 0 && sum.failed === 0 && sum.converged ? 0 : 1);
