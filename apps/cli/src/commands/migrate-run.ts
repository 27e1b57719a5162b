import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { AppError } from '@perch/contracts';
import { said } from '../output.ts';
import type { Run } from '../verb.ts';

const controlPlane = fileURLToPath(new URL('../../../control-plane/dist/main.js', import.meta.url));
const timeoutMs = 10 * 60_000;

/** The rules of the schema are the control plane's: its program does the work, as a child. */
export const run: Run = async (invocation, _args, options) => {
  if (!existsSync(controlPlane))
    throw new AppError('unavailable', `${controlPlane} is missing; build first: npm run build`);
  const url = options['postgres'] ?? invocation.settings.environment['PERCH_DATABASE_URL'];
  if (!url) throw new AppError('invalid', 'which database? Give --postgres URL or set PERCH_DATABASE_URL');
  const args = [controlPlane, 'migrate', ...(options['down'] ? ['--down'] : [])];
  const env = { ...invocation.settings.environment, PERCH_DATABASE_URL: url } as NodeJS.ProcessEnv;
  const { code, stdout, stderr } = await new Promise<{ code: number; stdout: string; stderr: string }>((done) => {
    execFile(process.execPath, args, { env, timeout: timeoutMs }, (error, out, words) =>
      done({ code: error ? (typeof error.code === 'number' ? error.code : 1) : 0, stdout: out, stderr: words }),
    );
  });
  if (code !== 0)
    throw new AppError(
      code === 2 ? 'invalid' : 'internal',
      `migrate failed: ${(stderr || stdout).trim().split('\n').slice(-10).join('\n')}`,
    );
  const value = lastJson(stdout);
  const names = (value['migrated'] as string[] | undefined) ?? [];
  if (options['down']) return said(value, 'The newest change is taken back.');
  return said(value, names.length > 0 ? `Done: ${names.join(', ')}.` : 'The database is up to date.');
};

function lastJson(text: string): Record<string, unknown> {
  const line = text
    .trim()
    .split('\n')
    .reverse()
    .find((one) => one.startsWith('{'));
  return line ? (JSON.parse(line) as Record<string, unknown>) : {};
}
