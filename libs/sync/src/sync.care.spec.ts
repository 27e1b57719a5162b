import { TritonFault } from '@perch/triton/control';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CrashBook } from './crash-book.ts';
import { Bench } from './reconcile-bench.fake.ts';
import { desiredModelOf } from './world.fake.ts';

const until = (check: () => unknown) => vi.waitFor(check, { timeout: 5_000, interval: 5 });

describe('SyncReconciler: models that need care', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.open();
  });
  afterEach(() => bench.close());

  const desire = (...models: ReturnType<typeof desiredModelOf>[]) => {
    bench.models = Object.fromEntries(models);
    return models.map(([name]) => name);
  };
  const allReady = (names: string[]) =>
    until(() => expect(names.map((name) => bench.stateOf(name))).toEqual(names.map(() => 'ready')));
  /** Several looks in which nothing may happen. */
  const looks = async (count = 5) => {
    for (let n = 0; n < count; n += 1) await bench.agent.pass();
  };

  it('finds the model that ends Triton, gives it up, and serves the others', async () => {
    const [poison, ...good] = desire(
      desiredModelOf(bench.store, 'die', { version: 1 }),
      desiredModelOf(bench.store, 'a', { version: 2 }),
      desiredModelOf(bench.store, 'b', { version: 3 }),
    );
    bench.triton.restartsByItself = true;
    await bench.start();
    await until(() => expect(bench.stateOf(poison!)).toBe('failed'));
    expect(bench.reasonOf(poison!)).toMatch(/^crashes its server: it ended 3 times in a row/);
    await allReady(good);
    await looks();
    expect(bench.triton.calls.filter((call) => call === `load ${poison}`)).toHaveLength(3);
  }, 20_000);

  it('needs two crashes of a server that is known to have ended by itself', async () => {
    bench.extra.crashSince = async () => ({ evidence: 'explained', words: 'crashed with SIGSEGV' });
    const [poison, ...good] = desire(
      desiredModelOf(bench.store, 'die', { version: 1 }),
      desiredModelOf(bench.store, 'a', { version: 2 }),
    );
    bench.triton.restartsByItself = true;
    await bench.start();
    await until(() => expect(bench.stateOf(poison!)).toBe('failed'));
    expect(bench.reasonOf(poison!)).toMatch(/^crashes its server: .* 2 times .*SIGSEGV/);
    await allReady(good);
    bench.triton.kill();
    bench.triton.restart();
    await allReady(good);
    expect(bench.triton.calls.filter((call) => call === `load ${poison}`)).toHaveLength(2);
  });

  it('blames nobody for a connection that broke while the server lived, or an end that was asked for', async () => {
    for (const crash of [undefined, { evidence: 'asked' as const, words: 'ended as asked' }]) {
      bench.extra.crashSince = async () => crash;
      const [name] = desire(desiredModelOf(bench.store, `weights ${crash?.evidence}`));
      for (let n = 0; n < 3; n += 1) bench.triton.failNext.push(new TritonFault('connection', 'load', 'cut'));
      await bench.start();
      await allReady([name!]);
      await bench.agent.stop();
    }
  });

  it('remembers over a restart who took the server down, and tries it again under another digest', async () => {
    const crashes = () => new CrashBook(bench.at('crashes.json'));
    bench.extra = { crashes: crashes(), crashSince: async () => ({ evidence: 'explained', words: 'exit code 1' }) };
    bench.triton.restartsByItself = true;
    const [poison] = desire(desiredModelOf(bench.store, 'die'));
    await bench.start();
    await until(() => expect(bench.stateOf(poison!)).toBe('failed'));
    await bench.agent.stop();
    bench.triton.calls.length = 0;
    bench.extra.crashes = crashes();
    await bench.start();
    await until(() => expect(bench.reasonOf(poison!)).toMatch(/^crashes its server/));
    await looks();
    expect(bench.triton.calls).toEqual([]);
    const [name, model] = desiredModelOf(bench.store, 'healed');
    bench.want({ [name]: model });
    await allReady([name]);
  });

  it('loads alone what is to be measured, and tells what the server grew by', async () => {
    let ramBytes = 100;
    let lookedExactly = 0;
    bench.extra.usage = {
      read: async (exact) => {
        if (exact) lookedExactly += 1;
        ramBytes += 1_000;
        return { ramBytes, gpuBytes: {} };
      },
      lagMs: () => 0,
    };
    const models = Array.from({ length: 4 }, (_, n) => desiredModelOf(bench.store, `w${n}`, { version: n + 1 }));
    for (const [, model] of models) model.measure = true;
    const names = desire(...models);
    bench.triton.loadMs = 10;
    await bench.start();
    await allReady(names);
    expect(bench.triton.mostLoadingAtOnce).toBe(1);
    expect(names.map((name) => bench.agent.snapshot!.models[name]!.memory)).toEqual(
      names.map(() => ({ ramBytes: 1_000, gpuBytes: {} })),
    );
    expect(lookedExactly).toBe(8);
  });

  it('holds loads while a restart is due, and gives up what was stuck', async () => {
    bench.settings = { loadDeadlineMs: 50 };
    const [slow, quick] = desire(
      desiredModelOf(bench.store, 'hang', { version: 1 }),
      desiredModelOf(bench.store, 'b', { version: 2 }),
    );
    await bench.start();
    await until(() => expect(bench.stateOf(slow!)).toBe('stuck'));
    await allReady([quick!]);
    bench.agent.holdLoads(true);
    const [late, lateModel] = desiredModelOf(bench.store, 'c', { version: 3 });
    bench.want({ ...bench.models, [late]: lateModel });
    await until(() => expect(bench.stateOf(late)).toBe('loading'));
    await looks();
    expect(bench.triton.calls).not.toContain(`load ${late}`);
    bench.agent.giveUpStuck([slow!], 'stuck: for the test');
    bench.triton.restart();
    bench.agent.holdLoads(false);
    await allReady([quick!, late]);
    expect(bench.stateOf(slow!)).toBe('failed');
    expect(bench.reasonOf(slow!)).toBe('stuck: for the test');
  });
});
