/**
 * `npm run test:gpu`: what only a GPU can show (instance groups on GPUs, measured GPU memory, a model that does not fit).
 * Wants an NVIDIA GPU (`nvidia-smi`) and a tritonserver with its back-ends: PERCH_GPU_TRITON names the program, default
 * `tritonserver` on the path, as in NVIDIA's image. Without either it says so and exits 0; with PERCH_REQUIRE_REAL=1 it
 * fails instead. Further words go to Vitest.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { ensureBuilt, root } from './install.mjs';

function fault() {
  try {
    const gpus = execFileSync('nvidia-smi', ['-L'], {
      encoding: 'utf8',
      timeout: 10_000,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    if (!/^GPU \d+:/m.test(gpus)) return 'nvidia-smi lists no GPU';
  } catch {
    return 'no GPU: nvidia-smi does not answer';
  }
  const triton = process.env.PERCH_GPU_TRITON ?? 'tritonserver';
  const { error } = spawnSync(triton, ['--help'], { stdio: 'ignore', timeout: 30_000 });
  return error
    ? `no Triton with GPU back-ends: ${triton} cannot be started (${error.code}); set PERCH_GPU_TRITON`
    : undefined;
}

const reason = fault();
if (reason !== undefined) {
  console.log(`skipped: ${reason}`);
  process.exit(process.env.PERCH_REQUIRE_REAL === '1' ? 1 : 0);
}
ensureBuilt();
const { status } = spawnSync('npx', ['--offline', 'vitest', 'run', '--project', 'gpu', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PERCH_GPU: '1' },
});
process.exit(status ?? 1);
