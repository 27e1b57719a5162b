import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ChildProgram } from './child-program.ts';
import { isAlive } from './folder-lock.source.ts';
import { Watchdog } from './watchdog.source.ts';

let folder: string;
let watchdog: Watchdog;
const said: string[] = [];
const programs: ChildProgram[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch child '));
  watchdog = new Watchdog();
  watchdog.start();
  said.length = 0;
});
afterEach(async () => {
  await Promise.all(programs.splice(0).map((program) => program.kill()));
  await watchdog.stop();
  await rm(folder, { recursive: true, force: true });
});

const listening = `console.log(JSON.stringify({ msg: 'listening', address: 'http://127.0.0.1:1' }));`;

function program(script: string): ChildProgram {
  const words = { say: (sentence: string) => void said.push(sentence) };
  const launch = () => ({ command: process.execPath, args: ['-e', script], env: process.env });
  const made = new ChildProgram('part', join(folder, 'part.log'), launch, watchdog, words);
  programs.push(made);
  return made;
}

describe('a program of the stack', () => {
  it('is started when it says that it listens, whatever else it says', async () => {
    const part = program(
      `console.log('hello'); console.log('{"listening"'); ${listening} setInterval(() => {}, 1000);`,
    );
    expect(await part.start()).toMatchObject({ address: 'http://127.0.0.1:1' });
    const pid = part.pid as number;
    await part.stop();
    expect(isAlive(pid)).toBe(false);
    expect(await readFile(join(folder, 'part.log'), 'utf8')).toContain('hello');
  });
  it('shows the end of its log when it does not start', async () => {
    const part = program(`console.error('no such database'); process.exit(3);`);
    await expect(part.start()).rejects.toThrow(/part ended \(exit code 3\)[\s\S]*no such database/);
  });
  it('is said to be missing when it cannot be started at all', async () => {
    const words = { say: () => undefined };
    const launch = () => ({ command: join(folder, 'none'), args: [], env: {} });
    await expect(new ChildProgram('part', join(folder, 'log'), launch, watchdog, words).start()).rejects.toThrow(
      /could not be started/,
    );
  });
  it('is started again when it dies, and not after it was stopped', async () => {
    const part = program(`${listening} setInterval(() => {}, 1000);`);
    await part.start();
    const first = part.pid as number;
    process.kill(first, 'SIGKILL');
    await vi.waitFor(() => expect(said).toContain('part is back'), { timeout: 8_000, interval: 20 });
    expect(said[0]).toMatch(/part ended \(SIGKILL\); starting it again in 0\.5 s/);
    expect(part.pid).not.toBe(first);
    const second = part.pid as number;
    await part.stop();
    expect(isAlive(second)).toBe(false);
    expect(said.length).toBe(2);
  });
  it('takes what it started itself along', async () => {
    const grandchild = `const { spawn } = require('node:child_process'); console.log('pid ' + spawn('sleep', ['60']).pid);`;
    const part = program(`${grandchild} ${listening} setInterval(() => {}, 1000);`);
    await part.start();
    const pid = Number(/pid (\d+)/.exec(await readFile(join(folder, 'part.log'), 'utf8'))?.[1]);
    await part.stop();
    await vi.waitFor(async () => expect(await gone(pid)).toBe(true), { timeout: 5_000, interval: 20 });
  });
  it('ends at once when the start is called off', async () => {
    const part = program('setInterval(() => {}, 1000);');
    const off = new AbortController();
    const starting = part.start(off.signal);
    off.abort();
    await expect(starting).rejects.toThrow(/was stopped while it started/);
    expect(await gone(part.pid as number)).toBe(true);
  });
});

/** Dead, or dead and not yet asked about by its parent. */
async function gone(pid: number): Promise<boolean> {
  if (!isAlive(pid)) return true;
  return / Z /.test(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ' Z '));
}
