/**
 * `ensureInstalled()`: runs `npm ci` when node_modules is not what the lock file says, `ensureBuilt()`: transpiles what
 * changed. Starts with Node's built-ins only, so that one command works on a fresh clone.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
/** npm writes what it installed into node_modules itself; it counts when every package that is not optional is there. */
function installed() {
  const done = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(done)) return false;
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const found = JSON.parse(readFileSync(done, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, { version, link, optional }]) =>
      !path.startsWith('node_modules/') || optional || (link ? found[path]?.link : found[path]?.version === version),
  );
}

const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
};

/** Whether the process that made the lock is gone; one that had no time to write its number is given ten seconds. */
function isLeftOver(lock) {
  const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  try {
    return !isAlive(Number(readFileSync(join(lock, 'pid'), 'utf8')));
  } catch {
    return age > 10_000;
  }
}

/** Two commands in one clone at once: the second waits for the first. */
function withLock(work) {
  const lock = join(root, '.perch-install.lock');
  for (;;) {
    try {
      mkdirSync(lock);
      writeFileSync(join(lock, 'pid'), String(process.pid));
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      if (isLeftOver(lock)) rmSync(lock, { recursive: true, force: true });
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    }
  }
  try {
    return work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (result.error) throw result.error;
  return result.status ?? 1;
}

export function ensureInstalled() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    console.error(`Perch wants Node 20.19 or newer; this is ${process.version}`);
    process.exit(2);
  }
  if (installed()) return;
  withLock(() => {
    if (installed()) return;
    console.error('installing dependencies (npm ci) …');
    const status = run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
      stdio: ['ignore', 2, 2],
      shell: process.platform === 'win32',
    });
    if (status !== 0) process.exit(status);
  });
}

export function ensureBuilt() {
  ensureInstalled();
  // Nobody may read a file while another command writes it.
  const status = withLock(() => run(process.execPath, [join(root, 'scripts/build.mjs')], { stdio: ['ignore', 2, 2] }));
  if (status !== 0) process.exit(status);
}
