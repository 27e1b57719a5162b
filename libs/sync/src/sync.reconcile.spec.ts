import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { TritonFault } from '@perch/triton/control';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Bench } from './reconcile-bench.fake.ts';
import { desiredModelOf } from './world.fake.ts';

const until = (check: () => unknown) => vi.waitFor(check, { timeout: 5_000, interval: 5 });
const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

describe('SyncReconciler', () => {
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
  const settled = () => until(() => expect(bench.agent.snapshot?.inStep).toBe(true));
  /** Several looks in which nothing may happen. */
  const looks = async (count = 5) => {
    for (let n = 0; n < count; n += 1) await bench.agent.pass();
  };

  it('pulls, stages, loads, warms and reports what the model says about itself', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights', { extra: { 'labels.txt': 'cat\ndog\n' } }));
    await bench.start();
    await allReady([name!]);
    const { since, ...facts } = bench.agent.snapshot!.models[name!]!;
    expect(Date.now() - Date.parse(since)).toBeLessThan(5_000);
    expect(facts).toMatchObject({ reason: null, maxBatchSize: 8, inputs: [{ name: 'x', shape: [-1, 4] }] });
    expect(bench.triton.served(name!)).toBe('weights');
    expect(await readFile(bench.at('repository', name!, 'config.pbtxt'), 'utf8')).toContain(`name: "${name}"`);
    expect(await readFile(bench.at('repository', name!, 'labels.txt'), 'utf8')).toBe('cat\ndog\n');
    expect(await readdir(bench.at('staging'))).toEqual([]);
  });

  it('goes through the states in order', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    const seen: string[] = [];
    bench.triton.loadMs = 30;
    const agent = await bench.start();
    agent.onChange(({ models }) => seen.push(models[name!]?.state ?? 'absent'));
    await allReady([name!]);
    const order = ['pulling', 'staging', 'loading', 'warming', 'ready'];
    expect(seen.filter((state, n) => state !== seen[n - 1])).toEqual(order);
  });

  it('pulls a file once that two models share, and links instead of copying', async () => {
    const names = desire(
      desiredModelOf(bench.store, 'a', { version: 1, extra: { 'big.bin': 'shared' } }),
      desiredModelOf(bench.store, 'b', { version: 2, extra: { 'big.bin': 'shared' } }),
    );
    await bench.start();
    await allReady(names);
    const shared = bench.models[names[0]!]!.files.find(({ path }) => path === 'big.bin')!;
    expect(bench.store.gets.filter(({ hash }) => hash === shared.sha256)).toHaveLength(1);
    expect((await stat(bench.at('repository', names[1]!, 'big.bin'))).nlink).toBe(3);
  });

  it('shows Triton’s reason of a bad model as it stands, does not ask again, and serves the neighbour', async () => {
    const [bad, good] = desire(
      desiredModelOf(bench.store, 'corrupt graph at node 7', { version: 1 }),
      desiredModelOf(bench.store, 'weights', { version: 2 }),
    );
    await bench.start();
    await allReady([good!]);
    await until(() => expect(bench.stateOf(bad!)).toBe('failed'));
    expect(bench.reasonOf(bad!)).toBe('Internal: onnxruntime: corrupt graph at node 7');
    await looks();
    expect(bench.triton.calls.filter((call) => call === `load ${bad}`)).toHaveLength(1);
    expect(bench.agent.snapshot?.inStep).toBe(true);
    // Another agent on the same server knows it from Triton alone.
    await bench.agent.stop();
    await bench.start();
    await until(() => expect(bench.stateOf(bad!)).toBe('failed'));
    await looks();
    expect(bench.triton.calls.filter((call) => call === `load ${bad}`)).toHaveLength(1);
  });

  it('tries a failed model again when it was removed and wanted again', async () => {
    const [bad] = desire(desiredModelOf(bench.store, 'corrupt graph'));
    await bench.start();
    await until(() => expect(bench.stateOf(bad!)).toBe('failed'));
    const again = bench.models;
    bench.want({});
    await until(() => expect(bench.agent.snapshot?.present).toEqual([]));
    bench.want(again);
    await until(() => expect(bench.triton.calls.filter((call) => call === `load ${bad}`)).toHaveLength(2));
    await until(() => expect(bench.stateOf(bad!)).toBe('failed'));
  });

  it('shows a configuration that cannot be written as the model’s failure', async () => {
    const [name, model] = desiredModelOf(bench.store, 'weights');
    bench.models = { [name]: { ...model, engine: { ...model.engine, config: 'no such field: 1' } } };
    await bench.start();
    await until(() => expect(bench.stateOf(name)).toBe('failed'));
    expect(bench.reasonOf(name)).toMatch(/config text of toy-v1.*no/);
    expect(bench.triton.calls).toEqual([]);
  });

  it('loads at most four at a time', async () => {
    const names = desire(
      ...Array.from({ length: 10 }, (_, n) => desiredModelOf(bench.store, `weights ${n}`, { version: n + 1 })),
    );
    bench.triton.loadMs = 20;
    await bench.start();
    await allReady(names);
    expect(bench.triton.mostLoadingAtOnce).toBe(4);
  });

  it('calls a load that does not end stuck, gives its place to others, and takes it when it ends after all', async () => {
    const hanging = Array.from({ length: 4 }, (_, n) => desiredModelOf(bench.store, `hang ${n}`, { version: n + 1 }));
    const stuck = desire(...hanging);
    bench.settings = { loadDeadlineMs: 60 };
    await bench.start();
    await until(() => expect(stuck.map((name) => bench.stateOf(name))).toEqual(stuck.map(() => 'stuck')));
    const late = desiredModelOf(bench.store, 'weights', { version: 9 });
    bench.want({ ...bench.models, [late[0]]: late[1] });
    await allReady([late[0]]);
    expect(stuck.map((name) => bench.stateOf(name))).toEqual(stuck.map(() => 'stuck'));
    bench.triton.finish(stuck[0]!);
    await allReady([stuck[0]!]);
  });

  it('unloads first and removes the folder when Triton has let go', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    bench.triton.unloadMs = 50;
    await bench.start();
    await allReady([name!]);
    bench.want({});
    await until(() => expect(bench.triton.calls).toContain(`unload ${name}`));
    expect(await exists(bench.at('repository', name!, '1/model.onnx'))).toBe(true);
    expect(bench.stateOf(name!)).toBe('unloading');
    await until(async () => expect(await exists(bench.at('repository', name!))).toBe(false));
    await until(() => expect(bench.agent.snapshot?.models).toEqual({}));
    await settled();
  });

  it('removes orphans of an earlier agent, leaves foreign models, and removes nothing while removals are held', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    await bench.start();
    await allReady([name!]);
    await bench.agent.stop();
    await mkdir(bench.at('repository/foreign/1'), { recursive: true });
    await writeFile(bench.at('repository/foreign/config.pbtxt'), 'name: "foreign"');
    await writeFile(bench.at('repository/foreign/1/model.onnx'), 'theirs');
    await bench.triton.control().load('foreign');

    bench.models = {};
    bench.removalsAllowed = false;
    await bench.start();
    await until(() => expect(bench.stateOf(name!)).toBe('ready'));
    await looks();
    expect(bench.triton.ready().sort()).toEqual(['foreign', name]);
    expect(bench.agent.snapshot?.orphans).toEqual([name]);

    bench.removalsAllowed = true;
    bench.want();
    await until(() => expect(bench.triton.ready()).toEqual(['foreign']));
    await until(async () => expect(await readdir(bench.at('repository'))).toEqual(['foreign']));
    await looks();
    expect(bench.triton.ready()).toEqual(['foreign']);
  });

  it('does nothing to anything before a document is there', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    await bench.start();
    await allReady([name!]);
    await bench.agent.stop();
    const calls = bench.triton.calls.length;
    bench.models = {};
    bench.removalsAllowed = false;
    await bench.start();
    await looks();
    expect(bench.triton.calls).toHaveLength(calls);
  });

  it('does not load again what Triton serves, but proves it again', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    await bench.start();
    await allReady([name!]);
    await bench.agent.stop();
    let warmed = 0;
    bench.warmUp = {
      ...bench.warmUp,
      warm: async () => {
        warmed += 1;
        return { outcome: 'ok' };
      },
    };
    await bench.start();
    await allReady([name!]);
    expect(warmed).toBe(1);
    expect(bench.triton.calls).toEqual([`load ${name}`]);
  });

  it('brings everything back from the cache when Triton was restarted, without the control plane', async () => {
    const names = desire(
      desiredModelOf(bench.store, 'a', { version: 1 }),
      desiredModelOf(bench.store, 'b', { version: 2 }),
    );
    await bench.start();
    await allReady(names);
    await bench.store.stop();
    bench.triton.kill();
    await until(() => expect(bench.agent.snapshot?.triton.live).toBe(false));
    expect(bench.stateOf(names[0]!)).toBe('loading');
    expect(bench.reasonOf(names[0]!)).toMatch(/model server does not answer: No connection/);
    bench.triton.restart();
    await allReady(names);
    await bench.store.start();
  });

  it('tries again after transport errors of a load, and keeps a model that was loaded meanwhile', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    bench.triton.failNext.push(new TritonFault('deadline', 'load', 'Deadline exceeded'));
    await bench.start();
    await until(() => expect(bench.reasonOf(name!)).toBe('Deadline exceeded'));
    expect(bench.stateOf(name!)).toBe('loading');
    await allReady([name!]);
    expect(bench.triton.calls).toEqual([`load ${name}`, `load ${name}`]);
  });

  it('is not ready before the warm-up got through, and says why', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    let cut = true;
    bench.warmUp = {
      ...bench.warmUp,
      warm: async () => {
        if (cut) throw new TritonFault('deadline', 'infer', 'no answer in time');
        return { outcome: 'refused', words: 'zeros make no sense' };
      },
    };
    await bench.start();
    await until(() => expect(bench.reasonOf(name!)).toBe('no answer in time'));
    expect(bench.stateOf(name!)).toBe('warming');
    cut = false;
    await allReady([name!]);
  });

  it('is failed for good when it does not answer a golden request as it should, until its files change', async () => {
    const golden = {
      request: { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }] },
      outputs: [{ name: 'y', data: [2] }],
    };
    const proved: string[] = [];
    let fault: string | undefined = 'output y differs at [0]: wanted 2, got 3';
    bench.warmUp = {
      ...bench.warmUp,
      prove: async (model, { request }) => {
        proved.push(`${model} ${request.inputs[0]!.name}`);
        return fault;
      },
    };
    const withGolden = (text: string, weights: string) =>
      desiredModelOf(bench.store, weights, { extra: { 'golden/one.json': text } });
    const text = JSON.stringify(golden);
    const [name, broken] = desire(withGolden(text, 'weights'), withGolden('{', 'others'));
    await bench.start();
    await until(() => expect(bench.stateOf(name!)).toBe('failed'));
    expect(bench.reasonOf(name!)).toBe('golden request one: output y differs at [0]: wanted 2, got 3');
    await until(() => expect(bench.stateOf(broken!)).toBe('failed'));
    expect(bench.reasonOf(broken!)).toMatch(/^golden\/one.json: is no JSON/);
    expect(proved).toEqual([`${name} x`]);
    fault = undefined;
    await looks();
    expect(bench.stateOf(name!)).toBe('failed');
    const [next] = desire(withGolden(JSON.stringify({ ...golden, description: 'corrected' }), 'weights'));
    bench.want();
    await allReady([next!]);
    expect(proved).toEqual([`${name} x`, `${next} x`]);
  });

  it('pulls a cached file again that was changed, before Triton needs it', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    await bench.start();
    await allReady([name!]);
    const { sha256 } = bench.models[name!]!.files[0]!;
    await rm(bench.cache.store.pathOf(sha256));
    await writeFile(bench.cache.store.pathOf(sha256), 'weighTs');
    await until(async () => expect(await readFile(bench.cache.store.pathOf(sha256), 'utf8')).toBe('weights'));
    expect(bench.stateOf(name!)).toBe('ready');
    expect(bench.store.gets).toHaveLength(2);
  });

  it('notices at a restart that a file rotted on disk, and serves only what was hashed', async () => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    await bench.start();
    await allReady([name!]);
    await bench.agent.stop();
    const { sha256 } = bench.models[name!]!.files[0]!;
    // In place: cache and repository share the inode.
    await writeFile(bench.cache.store.pathOf(sha256), 'w3ights');
    bench.triton.restart();
    await bench.start();
    await allReady([name!]);
    expect(bench.triton.served(name!)).toBe('weights');
  });

  it.each(['corrupt', 'w3ights'])('a file that changes under a load (to %s) is no word on the model', async (now) => {
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    const { sha256 } = bench.models[name!]!.files[0]!;
    const served = new Set<string | undefined>();
    let spoiled = false;
    bench.warmUp = {
      ...bench.warmUp,
      warm: async () => {
        served.add(bench.triton.served(name!));
        return { outcome: 'ok' };
      },
    };
    bench.triton.loadMs = 20;
    bench.trace = (_model, step) => {
      if (step !== 'load asked' || spoiled) return;
      spoiled = true;
      void rm(bench.cache.store.pathOf(sha256)); // the cache is in order again by itself
      void writeFile(bench.at('repository', name!, '1/model.onnx'), now);
    };
    await bench.start();
    await allReady([name!]);
    expect(spoiled).toBe(true);
    expect([...served]).toEqual(['weights']);
  });

  it('gives up a pull that nobody wants any more', async () => {
    bench.store.intercept = ({ response }) => {
      response.writeHead(200, { 'content-length': 7 }).write('we');
      return true;
    };
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    await bench.start();
    await until(() => expect(bench.store.gets).toHaveLength(1));
    bench.want({});
    await until(() => expect(bench.agent.snapshot?.models).toEqual({}));
    await settled();
    expect(await readdir(bench.at('cache/blobs'))).toEqual([]);
    expect(name).toBeDefined();
  });

  it('waits with a clear reason when the disk is full, and goes on when there is room', async () => {
    let free = 3;
    bench.freeBytes = async () => free;
    const [name] = desire(desiredModelOf(bench.store, 'weights'));
    await bench.start();
    await until(() =>
      expect(bench.reasonOf(name!)).toMatch(/^no_space: blob [0-9a-f]{64} takes 7 bytes .* where 3 are free/),
    );
    expect(bench.stateOf(name!)).toBe('pulling');
    free = 1_000;
    await allReady([name!]);
  });

  it('does not replace a folder that somebody else made under a desired name', async () => {
    const [, model] = desiredModelOf(bench.store, 'weights');
    await mkdir(bench.at('repository/plain-name'), { recursive: true });
    await writeFile(bench.at('repository/plain-name/theirs.txt'), 'theirs');
    bench.models = { 'plain-name': model };
    await bench.start();
    await until(() => expect(bench.stateOf('plain-name')).toBe('failed'));
    expect(bench.reasonOf('plain-name')).toMatch(/plain-name.*was not made by Perch/);
    expect(await readFile(bench.at('repository/plain-name/theirs.txt'), 'utf8')).toBe('theirs');
  });
});

describe('SyncReconciler, cut short at any step', () => {
  const steps = [
    'pulled',
    'verified',
    'folder made',
    'files linked',
    'configuration written',
    'old folder gone',
    'folder in place',
    'load asked',
    'loaded',
    'warmed',
  ];

  it.each(steps)('reaches the same state when the process ends after "%s"', async (last) => {
    const bench = await Bench.open();
    try {
      const [name, model] = desiredModelOf(bench.store, 'weights', { extra: { 'labels.txt': 'cat' } });
      bench.models = { [name]: model };
      let ended = false;
      bench.trace = (_, step) => {
        // A process that has ended does nothing more, whatever was queued.
        if (step === last) ended = true;
        if (ended) throw new Error('the process ended');
      };
      await bench.start();
      await until(() => expect(ended).toBe(true));
      const dead = bench.agent;
      await dead.stop();
      bench.trace = undefined;
      await bench.start();
      await until(() => expect(bench.stateOf(name)).toBe('ready'));
      expect(bench.triton.served(name)).toBe('weights');
      expect((await readdir(bench.at('repository', name))).sort()).toEqual([
        '1',
        'config.pbtxt',
        'labels.txt',
        'perch.json',
      ]);
      expect(await readdir(bench.at('staging'))).toEqual([]);
      expect(await readdir(bench.at('cache/partial'))).toEqual([]);
      expect(bench.triton.calls.filter((call) => call.startsWith('unload'))).toEqual([]);
    } finally {
      await bench.close();
    }
  });
});
