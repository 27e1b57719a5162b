import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Watchdog } from './watchdog.source.ts';

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function sleeper(script = 'sleep 60'): ChildProcess {
  const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: 'ignore' });
  children.push(child);
  return child;
}
const ended = (child: ChildProcess) =>
  new Promise<string>((done) => child.once('exit', (code, signal) => done(signal ?? String(code))));

/** As if we were killed: the pipe closes without a word. */
function cut(watchdog: Watchdog): void {
  (watchdog as unknown as { ending: boolean; child: ChildProcess }).ending = true;
  (watchdog as unknown as { child: ChildProcess }).child.stdin?.end();
}

describe('when perch up is killed', () => {
  it('its children are ended, each by its signal, the newest first', async () => {
    const watchdog = new Watchdog();
    watchdog.start();
    const folder = await mkdtemp(join(tmpdir(), 'perch-watchdog-'));
    const heard = join(folder, 'heard');
    // Each writes down what it was told: the exits themselves may reach us in any order.
    const listener = async (name: string) => {
      const tell = (signal: string) => `trap 'echo ${name} ${signal} >> ${heard}; exit' ${signal}`;
      const script = `${tell('INT')}; ${tell('TERM')}; echo up; while :; do sleep 0.05; done`;
      const child = spawn('/bin/sh', ['-c', script], { detached: true });
      children.push(child);
      await new Promise((up) => child.stdout.once('data', up));
      return child;
    };
    const [first, second] = [await listener('first'), await listener('second')];
    const all = Promise.all([ended(first), ended(second)]);
    watchdog.watch(first.pid as number, 'INT');
    watchdog.watch(second.pid as number);
    cut(watchdog);
    await all;
    expect(await readFile(heard, 'utf8')).toBe('second TERM\nfirst INT\n');
    await rm(folder, { recursive: true });
  });
  it('one that does not listen is ended by force', async () => {
    const watchdog = new Watchdog(300);
    watchdog.start();
    const child = spawn('/bin/sh', ['-c', "trap '' TERM; echo deaf; while :; do sleep 1; done"], { detached: true });
    children.push(child);
    const how = ended(child);
    await new Promise((done) => child.stdout.once('data', done));
    watchdog.watch(child.pid as number);
    cut(watchdog);
    expect(await how).toBe('SIGKILL');
  });
});

describe('otherwise', () => {
  it('nothing is ended: not what was forgotten, nor at an orderly end', async () => {
    const watchdog = new Watchdog();
    watchdog.start();
    const [kept, forgotten] = [sleeper('exec sleep 60'), sleeper('exec sleep 60')];
    watchdog.watch(kept.pid as number);
    watchdog.watch(forgotten.pid as number);
    watchdog.forget(forgotten.pid as number);
    await watchdog.stop();
    expect([kept.exitCode, kept.signalCode, forgotten.exitCode, forgotten.signalCode]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });
  it('a watchdog that dies is replaced, and the new one knows them all', async () => {
    const watchdog = new Watchdog();
    watchdog.start();
    const child = sleeper('exec sleep 60');
    const how = ended(child);
    watchdog.watch(child.pid as number);
    const before = watchdog.pid as number;
    process.kill(before, 'SIGKILL');
    await expect.poll(() => watchdog.pid, { timeout: 5_000 }).not.toBe(before);
    cut(watchdog);
    expect(await how).toBe('SIGTERM');
  });
});
