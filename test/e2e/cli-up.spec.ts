import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { scaleModel } from '../support/onnx.ts';
import { Person, runs, type Up, until } from './cli-stack.ts';

let person: Person;
beforeEach(async () => {
  person = await Person.make();
});
afterEach(() => person.leave());

const allGone = async (pids: readonly number[]) => {
  for (const pid of pids) if (await runs(pid)) return false;
  return true;
};
const pidsOf = (up: Up) => Object.values(up.line.pids);

async function serveScale(factor: number): Promise<void> {
  await writeFile(join(person.folder, 'model.onnx'), scaleModel(factor));
  await person.json('model', 'upload', 'demo/scale', 'model.onnx', '--publish');
  await person.json('endpoint', 'add', 'scale', '--model', 'demo/scale', '--wait');
}
const infer = () => person.json<{ y: number[][] }>('endpoint', 'infer', 'scale', '--json', '{"x": [[1, 2, 3, 4]]}');

describe('perch up', () => {
  it('starts everything, tells a second one who is there, keeps its data, and leaves nothing behind', async () => {
    const up = await person.up();
    expect(await person.run(['doctor'])).toMatchObject({ code: 0, out: expect.stringContaining('All is well') });
    const second = await person.run(['up', '--data', up.line.dataDir]);
    expect(second).toMatchObject({ code: 1, err: expect.stringContaining(`process ${up.line.pid}`) });
    await serveScale(3);
    expect(await infer()).toEqual({ y: [[3, 6, 9, 12]] });

    expect(await up.end('SIGTERM')).toBe(0);
    expect(await allGone(pidsOf(up))).toBe(true);

    const again = await person.up();
    expect((await infer()).y).toEqual([[3, 6, 9, 12]]);
    expect(await again.end()).toBe(0); // its standard input closed
    expect(await allGone(pidsOf(again))).toBe(true);
  });

  it('keeps secrets to their owner, and the database behind a password of its own', async () => {
    const up = await person.up();
    const contexts = join(person.folder, 'config', 'contexts.json');
    expect((await stat(contexts)).mode & 0o777).toBe(0o600);
    expect((await stat(join(up.line.dataDir, 'state.json'))).mode & 0o777).toBe(0o600);
    const key = JSON.parse(await readFile(contexts, 'utf8')).contexts.local.apiKey as string;
    expect(JSON.stringify(up.line) + up.words).not.toContain(key);
    for (const name of ['control-plane', 'agent', 'router'])
      expect(await readFile(join(up.line.logs, `${name}.log`), 'utf8')).not.toContain(key);
    const port = Number(
      (await readFile(join(up.line.databaseDir, 'cluster', 'postmaster.pid'), 'utf8')).split('\n')[3],
    );
    for (const password of ['', 'password', 'postgres', 'perch']) {
      const client = new pg.Client({ host: '127.0.0.1', port, user: 'perch', database: 'perch', password });
      await expect(client.connect()).rejects.toThrow(/password/i);
    }
    await up.end();
  });

  it('starts again whatever dies, and says so', async () => {
    const up = await person.up();
    await serveScale(2);
    for (const [name, word] of [
      ['router', 'router'],
      ['engine', 'engine'],
      ['agent', 'agent'],
      ['control-plane', 'control-plane'],
      ['postgres', 'PostgreSQL'],
    ] as const) {
      process.kill(up.line.pids[name] as number, 'SIGKILL');
      await until(
        () => up.words.includes(`${word} is back`),
        60_000,
        () => up.words,
      );
    }
    await until(
      async () => (await person.run(['endpoint', 'infer', 'scale', '--json', '{"x": [[1, 1, 1, 1]]}'])).code === 0,
      60_000,
    );
    expect((await infer()).y).toEqual([[2, 4, 6, 8]]);
    expect(await up.end('SIGINT')).toBe(0);
  }, 300_000);

  it('takes its children along when it is killed, and the next one goes on from there', async () => {
    const up = await person.up();
    await serveScale(4);
    await up.end('SIGKILL');
    await until(() => allGone(pidsOf(up)), 40_000);
    const again = await person.up();
    expect(again.words).toContain('was killed');
    expect((await infer()).y).toEqual([[4, 8, 12, 16]]);
    await again.end();
  }, 300_000);

  it('shows why a program did not start, and leaves nothing running', async () => {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as { port: number };
    const { code, err } = await person.run(['up', '--port', String(port), '--data', join(person.folder, 'data')]);
    server.close();
    expect(code).toBe(1);
    expect(err).toMatch(/control-plane (ended|did not listen)[\s\S]*EADDRINUSE/);
    const { children } = JSON.parse(await readFile(join(person.folder, 'data', 'state.json'), 'utf8'));
    expect(children).toEqual([]);
    expect(
      (
        await person.run(['up', '--triton', '--data', join(person.folder, 'other')], {
          env: { PERCH_TOOLS_DIR: '/nowhere' },
        })
      ).err,
    ).toContain('node scripts/real-triton.mjs install');
  });

  it('refuses options that cannot be, naming them', async () => {
    await mkdir(join(person.folder, 'x'));
    for (const [flag, value] of [
      ['--port', 'many'],
      ['--postgres', 'mysql://x'],
      ['--s3', 'ftp://x'],
    ] as const)
      expect(await person.run(['up', flag, value])).toMatchObject({ code: 2, err: expect.stringContaining(flag) });
  });
});
