/** Rewrites what is generated and committed: openapi.json, from the controllers and the contracts. `--check` only compares. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const target = join(root, 'openapi.json');
const run = (...args) =>
  execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });

run('scripts/build.mjs');
const text = run('apps/control-plane/dist/main.js', 'openapi');
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    console.error('openapi.json is stale: run `npm run generate` and commit it');
    process.exit(1);
  }
} else writeFileSync(target, text);
