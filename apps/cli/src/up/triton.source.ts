import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { AppError } from '@perch/contracts';

/** `triton.json` in the tools folder: how a real Triton is started. Placeholders in `args` are in braces. */
export interface InstalledTriton {
  version: string;
  command: string;
  args: string[];
  env: Record<string, string>;
  backends: string;
  caches: string;
}

const installer = fileURLToPath(new URL('../../../../scripts/real-triton.mjs', import.meta.url));
const howTo = 'install one with: node scripts/real-triton.mjs install (Linux on x86-64, Python 3.11, 130 MB)';

/** The Triton that is installed here. Throws `unavailable` with how to install one. */
export async function findTriton(
  toolsDir: string | undefined,
  environment: Record<string, string | undefined>,
): Promise<InstalledTriton> {
  if (existsSync(installer)) {
    // It also lays out this tree's own back-end, which may be newer than the one that was installed.
    const { stdout } = await promisify(execFile)(process.execPath, [installer, 'where'], {
      env: environment as NodeJS.ProcessEnv,
      timeout: 30_000,
    });
    const found = JSON.parse(stdout) as InstalledTriton & { found: boolean; reason?: string };
    if (found.found) return found;
    throw new AppError('unavailable', `no real Triton: ${found.reason}; ${howTo}`);
  }
  const cache = environment['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const file = join(toolsDir ?? join(cache, 'perch'), 'triton', 'triton.json');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) throw new AppError('unavailable', `no real Triton: there is no ${file}; ${howTo}`);
  return JSON.parse(text) as InstalledTriton;
}

export interface TritonWish {
  repository: string;
  httpPort: number;
  grpcPort: number;
  metricsPort: number;
}

export function tritonLaunch(
  found: InstalledTriton,
  wish: TritonWish,
  environment: Record<string, string | undefined>,
) {
  const values: Record<string, string | number> = {
    ...wish,
    id: 'triton',
    backends: found.backends,
    caches: found.caches,
  };
  const args = found.args.map((text) => text.replace(/\{(\w+)\}/g, (_all, name: string) => String(values[name] ?? '')));
  const path = [found.env['PATH'], environment['PATH']].filter(Boolean).join(':');
  return { command: found.command, args, env: { ...environment, ...found.env, PATH: path } };
}
