import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digestOf } from '@perch/contracts';
import { silentLogger } from '@perch/platform';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConsoleSource } from './console.source.ts';
import { PidStore } from './pid.store.ts';
import { startTimeOf, treeBytes } from './process.source.ts';
import { ServerLife } from './server-life.ts';
import { Supervisor, type SupervisorSettings } from './supervisor.ts';

const until = (check: () => unknown) => vi.waitFor(check, { timeout: 5_000, interval: 10 });
const quick = { firstMs: 10, maxMs: 40, resetMs: 60_000 };
/** Runs for ever, with a child, and says so. */
const server = `const c = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => 0, 1e6)']);
console.log('child ' + c.pid); setInterval(() => 0, 1e6);`;

describe.skipIf(process.platform !== 'linux')('Supervisor', () => {
  let folder: string;
  const open: Supervisor[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-supervisor-'));
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((supervisor) => supervisor.stop()));
    await rm(folder, { recursive: true, force: true });
  });

  const start = async (code: string, over: Partial<SupervisorSettings> = {}) => {
    const lines: string[] = [];
    const supervisor = new Supervisor(
      { logger: silentLogger, onConsole: (line) => lines.push(line) },
      {
        command: process.execPath,
        args: ['-e', code],
        env: { PATH: process.env['PATH'] },
        folder,
        restart: quick,
        exitTimeoutMs: 2_000,
        ...over,
      },
    );
    open.push(supervisor);
    await supervisor.start();
    return { supervisor, lines };
  };
  const lives = (pid: number) => startTimeOf(pid) !== undefined;
  const childOf = async (lines: string[]) => {
    await until(() => expect(lines.join()).toMatch(/child \d+/));
    return Number(/child (\d+)/.exec(lines.join())![1]);
  };

  it('starts again after each end, and keeps the last words', async () => {
    const { supervisor, lines } = await start(`console.error('no luck'); process.exit(3)`);
    await until(() => expect(supervisor.supervision.restarts).toBeGreaterThan(2));
    expect(supervisor.supervision).toMatchObject({ lastExit: 'exit code 3' });
    expect(supervisor.supervision.console.at(-1)).toBe('no luck');
    expect(lines).toContain('no luck');
    expect(await supervisor.endSince(0)).toMatchObject({ kind: 'explained', words: 'exit code 3' });
  });

  it('says why it cannot be started at all', async () => {
    const { supervisor } = await start('', { command: join(folder, 'nothing-here') });
    await until(() => expect(supervisor.supervision.lastExit).toBe('cannot be started: ENOENT'));
    expect(supervisor.pid).toBeUndefined();
  });

  it('ends children that outlive it, at a crash and at the end', async () => {
    const { supervisor, lines } = await start(server);
    const child = await childOf(lines);
    process.kill(supervisor.pid!, 'SIGKILL');
    await until(() => expect(lives(child)).toBe(false));
    await until(() => expect(supervisor.supervision).toMatchObject({ restarts: 1, state: 'starting' }));
    supervisor.noteAnswer();
    expect(supervisor.supervision.state).toBe('running');
    lines.length = 0;
    const next = await childOf(lines);
    const pid = supervisor.pid!;
    await supervisor.stop();
    // ended at once, and gone when the system has buried it
    await until(() => expect([lives(pid), lives(next)]).toEqual([false, false]));
    expect(supervisor.supervision).toMatchObject({ state: 'stopping', lastExit: 'ended as asked (SIGTERM)' });
  });

  it('kills what does not hear', async () => {
    const { supervisor, lines } = await start(`process.on('SIGTERM', () => console.log('deaf')); ${server}`, {
      exitTimeoutMs: 300,
    });
    await childOf(lines);
    const pid = supervisor.pid!;
    await supervisor.stop();
    expect(lives(pid)).toBe(false);
    expect(supervisor.supervision.lastExit).toBe('ended as asked (SIGKILL)');
    expect(lines).toContain('deaf');
  });

  it('restarts at once when asked, without blame', async () => {
    const { supervisor, lines } = await start(server, { restart: { ...quick, firstMs: 60_000, maxMs: 60_000 } });
    await childOf(lines);
    await supervisor.restart('for the test');
    await until(() => expect(supervisor.supervision).toMatchObject({ restarts: 1, console: [] }));
    expect(supervisor.lastEnd).toMatchObject({ kind: 'asked' });
    expect(lives(supervisor.pid!)).toBe(true);
  });

  it('takes over the server of an agent that died, and ends one of another command', async () => {
    const leave = (code: string) => {
      const command = { command: process.execPath, args: ['-e', code] };
      const consolePath = join(folder, 'triton.log');
      const { pid } = ServerLife.start({ ...command, env: { PATH: process.env['PATH'] }, consolePath }, Date.now());
      new PidStore(join(folder, 'triton.pid')).write(pid!, digestOf(command));
      return pid!;
    };
    const left = leave(server);
    const { supervisor } = await start(server);
    expect(supervisor.pid).toBe(left);
    process.kill(left, 'SIGKILL');
    await until(() => expect(supervisor.supervision).toMatchObject({ restarts: 1 }));
    expect(supervisor.supervision.lastExit).toMatch(/how is not known/);
    await supervisor.stop();
    const other = leave(`${server} // other`);
    const { supervisor: next } = await start(server);
    expect(lives(other)).toBe(false);
    expect(next.pid).not.toBe(other);
    expect(next.supervision.restarts).toBe(0);
  });

  it('does not take another process for its own', async () => {
    const { supervisor } = await start(server);
    const file = join(folder, 'triton.pid');
    const written = JSON.parse(await readFile(file, 'utf8'));
    expect(written.pid).toBe(supervisor.pid);
    await supervisor.stop();
    await writeFile(file, JSON.stringify({ ...written, pid: process.pid }));
    const { supervisor: next } = await start(server);
    expect(next.pid).not.toBe(process.pid);
  });

  it('counts the memory of children too', async () => {
    const { supervisor, lines } = await start(server);
    await childOf(lines);
    const tree = treeBytes(supervisor.pid!, false)!;
    expect(tree).toBeGreaterThan(40 * 1024 ** 2);
    expect(treeBytes(supervisor.pid!, true)!).toBeLessThanOrEqual(tree);
    expect(treeBytes(2 ** 30, false)).toBeUndefined();
  });
});

describe('ConsoleSource', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-console-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('keeps the last 200 lines, cuts long ones, and waits for the end of a line', async () => {
    const path = join(folder, 'log');
    const lines: string[] = [];
    const source = new ConsoleSource(path, (line) => lines.push(line));
    await source.open();
    await writeFile(path, Array.from({ length: 300 }, (_, n) => `line ${n}\n`).join(''));
    await source.drain();
    expect(source.tail(1_000)).toHaveLength(200);
    expect(source.tail(2)).toEqual(['line 298', 'line 299']);
    await writeFile(path, `${'x'.repeat(900)}\n\nhalf`, { flag: 'a' });
    await source.drain();
    expect(source.tail(1)[0]).toHaveLength(500);
    await writeFile(path, ' and half\n', { flag: 'a' });
    await source.drain();
    expect(lines.at(-1)).toBe('half and half');
  });

  it('empties a file that has become long, and reads on', async () => {
    const path = join(folder, 'log');
    const source = new ConsoleSource(path);
    await source.open();
    await writeFile(path, `${'y'.repeat(99)}\n`.repeat(50_000));
    await source.drain();
    expect((await stat(path)).size).toBe(0);
    await writeFile(path, 'after\n', { flag: 'a' });
    await source.drain();
    expect(source.tail(1)).toEqual(['after']);
  });

  it('shows a new agent what was written before, without handing it on', async () => {
    const path = join(folder, 'log');
    await writeFile(path, 'before\n');
    const lines: string[] = [];
    const source = new ConsoleSource(path, (line) => lines.push(line));
    await source.open();
    expect(source.tail(1)).toEqual(['before']);
    expect(lines).toEqual([]);
  });
});
