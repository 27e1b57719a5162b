/**
 * `npm test`: types, lint, then every suite (unit, contract, integration, e2e); installs and builds what it needs.
 * Real parts that are not installed are skipped with their reason; with `--require-real` they fail. Further words go to
 * Vitest. Ends with `N passed, N failed`.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt, root, run } from './install.mjs';

ensureBuilt();
const words = process.argv.slice(2);
const requireReal = words.includes('--require-real') || process.env.PERCH_REQUIRE_REAL === '1';
const rest = words.filter((word) => word !== '--require-real');

let passed = 0;
let failed = 0;
const gate = (name, args) => {
  const ok = run('npx', ['--offline', ...args]) === 0;
  console.log(`${ok ? 'ok' : 'FAILED'}: ${name}`);
  if (ok) passed += 1;
  else failed += 1;
};
if (rest.length === 0) {
  gate('types', ['tsc', '--noEmit', '-p', '.']);
  gate('lint', ['biome', 'check', '.']);
}

const folder = mkdtempSync(join(tmpdir(), 'perch-test-'));
const report = join(folder, 'report.json');
const { status } = spawnSync(
  'npx',
  ['--offline', 'vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...rest],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...(requireReal ? { PERCH_REQUIRE_REAL: '1' } : {}) },
  },
);
try {
  const counts = JSON.parse(readFileSync(report, 'utf8'));
  passed += counts.numPassedTests;
  failed += counts.numFailedTests;
  const skipped = counts.testResults
    .flatMap((file) => file.assertionResults)
    .filter((test) => test.status !== 'passed' && test.status !== 'failed');
  const reasons = new Set(skipped.map((test) => test.ancestorTitles[0] ?? test.title));
  for (const reason of reasons) console.log(`skipped: ${reason}`);
  if (skipped.length > 0 && requireReal) failed += skipped.length;
} catch {
  failed += 1;
}
rmSync(folder, { recursive: true, force: true });
if (status !== 0 && failed === 0) failed += 1; // a suite that could not even start
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
