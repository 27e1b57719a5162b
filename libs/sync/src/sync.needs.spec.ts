import { mkdir, readdir } from 'node:fs/promises';
import type { DesiredModel } from '@perch/contracts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Bench } from './reconcile-bench.fake.ts';
import { desiredModelOf } from './world.fake.ts';

const until = (check: () => unknown) => vi.waitFor(check, { timeout: 5_000, interval: 5 });

describe('models that need others, on one server', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.open();
  });
  afterEach(() => bench.close());

  const model = (bytes: string): DesiredModel => desiredModelOf(bench.store, bytes)[1];
  const needing = (bytes: string, ...needs: string[]): [string, DesiredModel] => {
    const [name, plain] = desiredModelOf(bench.store, bytes, { name: 'caller' });
    return [name, { ...plain, needs }];
  };
  const versionFolders = async (name: string) =>
    (await readdir(bench.at('repository', name))).filter((entry) => /^\d+$/.test(entry));

  it('loads the need first, and takes it away last', async () => {
    const [caller, body] = needing('calls', 'scorer');
    bench.models = { [caller]: body, scorer: model('one') };
    bench.triton.loadMs = 20;
    await bench.start();
    await until(() => expect(bench.stateOf(caller)).toBe('ready'));
    expect(bench.triton.calls).toEqual(['load scorer', `load ${caller}`]);
    bench.want({});
    await until(() => expect(bench.triton.ready()).toEqual([]));
    expect(bench.triton.calls.slice(2)).toEqual([`unload ${caller}`, 'unload scorer']);
    await until(async () => expect(await readdir(bench.at('repository'))).toEqual([]));
  });

  it('brings a newer model in under a literal name without a gap, also when an older agent left it half done', async () => {
    bench.models = { scorer: model('one') };
    await bench.start();
    await until(() => expect(bench.stateOf('scorer')).toBe('ready'));
    const served: (string | undefined)[] = [];
    const watch = setInterval(() => served.push(bench.triton.served('scorer')), 1);
    bench.triton.loadMs = 20;
    bench.trace = (_model, step) => {
      if (step === 'version in place') throw new Error('cut');
    };
    bench.want({ scorer: model('two') });
    await until(() => expect(bench.reasonOf('scorer')).toContain('cut'));
    await bench.agent.stop();
    bench.trace = undefined;
    await bench.start();
    await until(() => expect(bench.triton.served('scorer')).toBe('two'));
    await until(() => expect(bench.stateOf('scorer')).toBe('ready'));
    clearInterval(watch);
    expect(new Set(served)).toEqual(new Set(['one', 'two']));
    expect(await versionFolders('scorer')).toEqual(['3']);
    // After a restart of the server the same is loaded from where it lies.
    bench.triton.restart();
    await until(() => expect(bench.triton.served('scorer')).toBe('two'));
  });

  it('a newer one that fails leaves the older one serving, and fails only who was made for it', async () => {
    const [caller, body] = needing('calls', 'scorer');
    bench.models = { scorer: model('one'), [caller]: body };
    await bench.start();
    await until(() => expect(bench.stateOf(caller)).toBe('ready'));
    const [next, nextBody] = needing('calls again', 'scorer');
    bench.want({ scorer: model('corrupt'), [caller]: body, [next]: nextBody });
    await until(() => expect(bench.stateOf(next)).toBe('failed'));
    expect(bench.reasonOf(next)).toBe('needs scorer, which failed: Internal: onnxruntime: corrupt');
    expect(bench.stateOf(caller)).toBe('ready');
    expect(bench.triton.served('scorer')).toBe('one');
    bench.want({ scorer: model('three'), [caller]: body, [next]: nextBody });
    await until(() => expect(bench.stateOf(next)).toBe('ready'));
    expect(bench.triton.served('scorer')).toBe('three');
    await until(async () => expect(await versionFolders('scorer')).toHaveLength(1));
  });

  it('a folder of somebody else under that name is left alone, and said', async () => {
    await mkdir(bench.at('repository', 'scorer'), { recursive: true });
    bench.models = { scorer: model('one') };
    await bench.start();
    await until(() => expect(bench.stateOf('scorer')).toBe('failed'));
    expect(bench.reasonOf('scorer')).toContain('was not made by Perch');
  });
});
