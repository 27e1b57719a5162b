import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CliSettings } from './cli.config.ts';
import { ContextStore } from './context.store.ts';
import { type GlobalOptions, Invocation } from './invocation.ts';

let folder: string;
let store: ContextStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch-context-'));
  store = new ContextStore(join(folder, 'config'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('contexts', () => {
  it('are kept for their owner alone', async () => {
    await store.save('prod', { url: 'http://a', apiKey: 'pk_secret' });
    expect((await stat(store.path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, 'config'))).mode & 0o777).toBe(0o700);
  });
  it('are saved, used and forgotten', async () => {
    await store.save('a', { url: 'http://a' });
    await store.save('b', { url: 'http://b' }, false);
    expect((await store.read()).current).toBe('a');
    await store.use('b');
    await store.remove('b');
    expect(await store.read()).toEqual({ current: null, contexts: { a: { url: 'http://a' } } });
    await expect(store.use('b')).rejects.toThrow('there is no context b (there are: a)');
  });
  it('says which file is broken', async () => {
    await store.save('a', { url: 'http://a' });
    await writeFile(store.path, 'oops');
    await expect(store.read()).rejects.toThrow(`${store.path} is not JSON`);
  });
});

describe('whom a command talks to', () => {
  const target = (global: GlobalOptions, settings: Partial<CliSettings> = {}) => {
    const all: CliSettings = {
      url: undefined,
      apiKey: undefined,
      routerUrl: undefined,
      context: undefined,
      configDir: join(folder, 'config'),
      dataDir: folder,
      toolsDir: undefined,
      color: true,
      environment: {},
      ...settings,
    };
    return new Invocation(global, all).target();
  };
  beforeEach(async () => {
    await store.save('a', { url: 'http://a/', apiKey: 'pk_a', routerUrl: 'http://ra/' });
    await store.save('b', { url: 'http://b' });
  });
  it.each([
    [{}, {}, 'http://b'],
    [{ context: 'a' }, {}, 'http://a'],
    [{ id: 'a' }, {}, 'http://a'],
    [{ id: 'b', context: 'a' }, {}, 'http://a'],
    [{}, { context: 'a' }, 'http://a'],
    [{ id: 'b' }, { context: 'a' }, 'http://b'],
    [{}, { url: 'http://env' }, 'http://env'],
    [{ context: 'a' }, { url: 'http://env' }, 'http://a'],
    [{ id: '0123abcd' }, {}, 'http://b'],
  ])('%j with %j is %s', async (global, settings, url) => {
    expect((await target(global, settings)).context.url).toBe(url);
  });
  it('takes the key and the router of the environment before those of the context', async () => {
    const { context } = await target({ context: 'a' }, { apiKey: 'pk_env', routerUrl: 'http://env' });
    expect(context).toEqual({ url: 'http://a', apiKey: 'pk_env', routerUrl: 'http://env' });
  });
  it('says what to do without a context, and with an unknown one', async () => {
    await store.write({ current: null, contexts: {} });
    await expect(target({})).rejects.toThrow(/perch up.*perch login/);
    await expect(target({ context: 'x' })).rejects.toThrow('there is no context x');
  });
});
