/** `npm run check`: types, lint and unit specs, side by side. `--fix` lets the linter write. */
import { spawn } from 'node:child_process';
import { ensureInstalled, root } from './install.mjs';

ensureInstalled();
const fix = process.argv.includes('--fix');
const steps = {
  types: ['tsc', '--noEmit', '-p', '.'],
  lint: ['biome', 'check', ...(fix ? ['--write'] : []), '.'],
  unit: ['vitest', 'run', '--project', 'unit'],
};

const started = performance.now();
const results = await Promise.all(
  Object.entries(steps).map(
    ([name, args]) =>
      new Promise((resolve) => {
        const child = spawn('npx', ['--offline', ...args], { cwd: root, env: { ...process.env, NO_COLOR: '1' } });
        let output = '';
        child.stdout.on('data', (chunk) => (output += chunk));
        child.stderr.on('data', (chunk) => (output += chunk));
        child.once('close', (code) => {
          console.log(
            `${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`,
          );
          resolve({ name, code, output });
        });
      }),
  ),
);
for (const { name, code, output } of results) if (code !== 0) console.log(`\n--- ${name}\n${output}`);
process.exit(results.every(({ code }) => code === 0) ? 0 : 1);
