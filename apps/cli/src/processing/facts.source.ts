import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { AppError, type ModuleFacts } from '@perch/contracts';
import { factsOf, type Seen } from './facts.plan.ts';
import type { InstalledSdk } from './sdk.source.ts';

const heapMb = 512;
/** For the module's own top level, which mostly takes a millisecond; an endless one never ends. */
const limitMs = 10_000;
const startLimitMs = 60_000;
/** Programs start what was built, also where this file is read from its source. */
const entry = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? '../../dist/processing/facts.entry.js' : './facts.entry.js',
    import.meta.url,
  ),
);

export interface FactsWish {
  bundle: Buffer;
  sdk: InstalledSdk;
  timeoutMs?: number;
}

/** What the bundle declares, found by loading it in a process that may nothing. Throws `invalid` with what is wrong with it. */
export async function readFacts(wish: FactsWish): Promise<{ facts: ModuleFacts; unknown: string[] }> {
  return factsOf(await look(wish));
}

/** The members of a bundle's default export that are no functions, and the types of all: found in that process. */
export function look({ bundle, sdk, timeoutMs = limitMs }: FactsWish): Promise<Seen> {
  const readable = [sdk.libraries, sdk.packages, fileURLToPath(new URL('../..', import.meta.url))];
  const child = spawn(
    process.execPath,
    [
      '--no-warnings',
      '--experimental-permission',
      ...readable.map((folder) => `--allow-fs-read=${folder.replace(/\/$/, '')}/*`),
      `--max-old-space-size=${heapMb}`,
      entry,
    ],
    { env: {}, stdio: ['ignore', 'ignore', 'pipe', 'ipc'], serialization: 'advanced' },
  );
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr!.on('data', (piece: Buffer) => {
      said = `${said}${piece.toString('utf8')}`.slice(-2_000);
    });
    const refuse = (words: string) => reject(new AppError('invalid', `the module cannot be loaded: ${words}`));
    const end = (words: string) => {
      child.kill('SIGKILL');
      refuse(words);
    };
    let timer = setTimeout(() => end(`no process was ready for it after ${startLimitMs / 1_000} s`), startLimitMs);
    child.on('message', (answer: Seen | { failed: string } | { ready: true }) => {
      if ('failed' in answer) return refuse(answer.failed);
      if (!('ready' in answer)) return resolve(answer);
      clearTimeout(timer);
      const late = `its top level was not done after ${timeoutMs / 1_000} s; long work belongs into load`;
      timer = setTimeout(() => end(late), timeoutMs);
      child.send(bundle, () => undefined);
    });
    child.once('error', (error) => reject(new AppError('internal', `cannot start a process: ${error.message}`)));
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      refuse(`its process ended (${signal ?? `exit ${code}`}) before it was loaded${lastLine(said)}`);
    });
  });
}

const lastLine = (said: string): string => {
  const line = said
    .trim()
    .split('\n')
    .filter((one) => /error|fatal/i.test(one))
    .at(-1);
  return line ? `: ${line.trim().slice(0, 300)}` : '';
};
