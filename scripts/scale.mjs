/**
 * `npm run scale`: many agents and routers in one process, real control planes, a real Postgres; what it costs.
 *
 *   --endpoints N (100)  --versions N (2)  --servers N (20)  --replicas N (1)  --routers N (2)  --control-planes N (1)
 *   --publishes N (10)   --idle-seconds N (5)  --seed N (1)
 *   --write FILE         also puts the table into this document
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ensureBuilt, root } from './install.mjs';

ensureBuilt();
const { status } = spawnSync(
  process.execPath,
  [
    '--conditions=perch-source',
    '--import',
    join(root, 'scripts/typescript.mjs'),
    join(root, 'test/scale/main.ts'),
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit', cwd: root },
);
process.exitCode = status ?? 1;
