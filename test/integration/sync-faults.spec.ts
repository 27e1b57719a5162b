import { execFile, execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { DesiredModel } from '@perch/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { scaleModel } from '../support/onnx.ts';
import { engineServer, Site } from './sync-stand.ts';

const run = promisify(execFile);
const until = (check: () => unknown, timeout = 30_000) => vi.waitFor(check, { timeout, interval: 20 });
const mainFile = join(import.meta.dirname, '../../apps/agent/dist/main.js');

describe('an agent whose surroundings fail', () => {
  let site: Site;
  let version = 0;
  beforeAll(async () => {
    site = await Site.open(engineServer);
    await site.start();
  });
  afterAll(() => site?.close());
  afterEach(() => {
    site.stand.onBlob = undefined;
  });

  const ready = (...names: string[]) =>
    until(() => expect(names.map((name) => site.stateOf(name))).toEqual(names.map(() => 'ready')));
  /** A model of about 20 MB (its note is ballast), published beside what is there. */
  const publishBig = (): [string, DesiredModel] => {
    version += 1;
    const note = randomBytes(10 * 1024 ** 2).toString('hex');
    const [name, model] = site.stand.model(scaleModel(version, { note }), version);
    site.stand.publish({ ...site.stand.document.models, [name]: model });
    return [name, model];
  };
  const publishSmall = (): [string, DesiredModel] => {
    version += 1;
    const [name, model] = site.stand.model(scaleModel(version), version);
    site.stand.publish({ ...site.stand.document.models, [name]: model });
    return [name, model];
  };
  const serves = async (name: string, factor: number) =>
    expect(await site.infer(name, [1, 1, 1, 1])).toEqual(Array(4).fill(factor));

  it('goes on behind cut connections instead of starting over', async () => {
    let cuts = 4;
    site.stand.onBlob = ({ response, bytes }) => {
      if (cuts-- <= 0) return false;
      response.writeHead(206, { 'content-length': bytes.length });
      response.write(bytes.subarray(0, 1024 ** 2), () => response.destroy());
      return true;
    };
    const [name, { files }] = publishBig();
    await ready(name);
    await serves(name, version);
    const fetched = site.stand.gets.reduce((sum, { from, to }) => sum + to - from + 1, 0);
    expect(fetched - files[0]!.size).toBeLessThan(4 * 8 * 1024 ** 2);
    expect(site.stand.gets.some(({ from }) => from % (8 * 1024 ** 2) !== 0)).toBe(true);
  });

  it('pulls again what came corrupt, and never serves it', async () => {
    let wrong = 1;
    site.stand.onBlob = ({ response, from, bytes }) => {
      if (from !== 0 || wrong-- <= 0) return false;
      const flipped = Buffer.from(bytes);
      flipped[500] = flipped[500]! ^ 1;
      response.writeHead(206, { 'content-length': bytes.length }).end(flipped);
      return true;
    };
    const [name] = publishBig();
    await ready(name);
    await serves(name, version);
  });

  it('asks for new addresses when the old ones have run out', async () => {
    let cut = false;
    site.stand.onBlob = ({ response, bytes }) => {
      if (cut) return false;
      cut = true;
      site.stand.expireUrls();
      response.writeHead(206, { 'content-length': bytes.length });
      response.write(bytes.subarray(0, 1024), () => response.destroy());
      return true;
    };
    const before = site.stand.refusedUrls;
    const [name] = publishBig();
    await ready(name);
    await serves(name, version);
    expect(site.stand.refusedUrls).toBeGreaterThan(before);
  });

  it('lets a slow pull of one model keep nobody waiting', async () => {
    const [slow, { files }] = publishBig();
    site.stand.onBlob = ({ hash, response, bytes }) => {
      if (hash !== files[0]!.sha256) return false;
      response.writeHead(206, { 'content-length': bytes.length }).write(bytes.subarray(0, 10));
      return true;
    };
    const [quick] = publishSmall();
    await ready(quick);
    const { [slow]: _, ...rest } = site.stand.document.models;
    site.stand.publish(rest);
    await until(() => expect(Object.keys(site.stand.state!.models)).not.toContain(slow));
  });

  it('keeps the reason of a blob that the store has lost, and gets it when it is back', async () => {
    const [name, model] = site.stand.model(scaleModel(77), 77);
    const { sha256 } = model.files[0]!;
    const bytes = site.stand.blobs.get(sha256)!;
    site.stand.blobs.delete(sha256);
    site.stand.publish({ ...site.stand.document.models, [name]: model });
    await until(() => expect(site.stand.state?.models[name]?.reason).toContain(sha256));
    expect(site.stateOf(name)).toBe('pulling');
    site.stand.blobs.set(sha256, bytes);
    await ready(name);
  });

  it('pulls a cached file again that was damaged, and serves on', async () => {
    const [name, { files }] = publishSmall();
    await ready(name);
    const path = join(site.folder, 'data/cache/blobs', files[0]!.sha256);
    const before = await readFile(path);
    await writeFile(path, Buffer.alloc(before.length));
    await until(async () => expect((await readFile(path)).equals(before)).toBe(true));
    await serves(name, version);
    await site.server.kill('SIGKILL');
    await site.server.start();
    await until(async () => serves(name, version));
    await ready(...Object.keys(site.stand.document.models));
  });

  it('enrols again when its token is unknown, serves meanwhile, and tells whose documents it followed', async () => {
    const [name] = Object.keys(site.stand.document.models);
    const { lineage } = site.stand.document;
    const enrolments = site.stand.enrolments.length;
    site.stand.forgetTokens();
    await until(() => expect(site.stand.enrolments.length).toBe(enrolments + 1));
    expect(site.stand.enrolments.at(-1)).toMatchObject({ name: 'server-a', previousLineage: lineage });
    expect(site.stateOf(name!)).toBe('ready');
    const identity = join(site.folder, 'data/identity.json');
    await until(async () => expect(JSON.parse(await readFile(identity, 'utf8')).token).toBe(site.stand.token));
    expect((await stat(identity)).mode & 0o777).toBe(0o600);
  });

  it('holds the removals of a document that went back in time, over a restart, until they are confirmed', async () => {
    const models = { ...site.stand.document.models };
    const names = Object.keys(models);
    await ready(...names);
    const [kept] = names;
    const restored = { lineage: randomUUID(), confirmed: false, revision: 1 };
    const [added, addedModel] = site.stand.model(scaleModel(99), 99);
    site.stand.publish({ [kept!]: models[kept!]!, [added]: addedModel }, restored);
    await ready(added);
    const gone = names.filter((name) => name !== kept).sort();
    await until(() => expect(site.stand.state?.heldRemovals).toEqual(gone));
    expect(site.stand.state).toMatchObject({ lineage: restored.lineage, revision: 1 });
    await site.agent.crash();
    await site.server.kill('SIGKILL');
    await site.server.start();
    // Also what the new document does not name is brought back, from the cache.
    for (const name of names) await until(async () => expect(await site.infer(name, [1, 1, 1, 1])).toBeDefined());
    expect(site.stand.state?.heldRemovals).toEqual(gone);
    site.stand.publish(site.stand.document.models, { confirmed: true });
    await until(() => expect(Object.keys(site.stand.state!.models).sort()).toEqual([added, kept].sort()));
    await until(async () => expect((await readdir(site.server.repository)).sort()).toEqual([added, kept].sort()));
    expect(site.stand.state?.heldRemovals).toEqual([]);
  });

  it('holds removals after its own data folder was lost', async () => {
    const names = Object.keys(site.stand.document.models).sort();
    await site.agent.stop('SIGKILL');
    site.agent.set('PERCH_DATA_DIR', join(site.folder, 'data-2'));
    site.stand.publish({}, { confirmed: false });
    await site.agent.start();
    await until(() => expect(site.stand.state?.heldRemovals).toEqual(names));
    for (const name of names) expect(await site.infer(name, [1, 1, 1, 1])).toBeDefined();
    site.stand.publish({}, { confirmed: true });
    await until(async () => expect(await readdir(site.server.repository)).toEqual([]));
  });

  it('beats with the hash alone while nothing changes', async () => {
    await until(async () => expect(await site.health()).toMatchObject({ ready: true }));
    // Others use the disk too, and may take its free space over a step just now.
    await until(async () => {
      const [states, beats] = [site.stand.observed.length, site.stand.beats];
      await until(() => expect(site.stand.beats).toBeGreaterThanOrEqual(beats + 2));
      expect(site.stand.observed.length).toBe(states);
    });
  });

  it('shows its work as metrics', async () => {
    const page = await (await fetch(`${site.agent.address}/metrics`)).text();
    for (const name of [
      'perch_agent_pull_bytes_total',
      'perch_agent_loads_total',
      'perch_agent_desired_revision',
      'perch_agent_observed_revision',
    ])
      expect(page).toMatch(new RegExp(`^# TYPE ${name} `, 'm'));
  });
});

const smallDisk = join(tmpdir(), `perch-small-disk-${randomUUID()}`);
const mountTmpfs = (options: string) =>
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', smallDisk], { stdio: 'ignore' });

/** Why no small disk can be made here. */
function noSmallDisk(): string | undefined {
  try {
    mkdirSync(smallDisk);
    mountTmpfs('size=8m');
    execFileSync('umount', [smallDisk]);
    return undefined;
  } catch {
    console.warn('skipped: the disk that is really full wants the right to mount (run as root)');
    return 'no right to mount';
  } finally {
    rmSync(smallDisk, { recursive: true, force: true });
  }
}
const cannotMount = noSmallDisk();

describe.skipIf(cannotMount)('a full disk', () => {
  beforeAll(() => {
    mkdirSync(smallDisk);
    mountTmpfs('size=8m');
  });
  afterAll(() => {
    execFileSync('umount', [smallDisk]);
    rmSync(smallDisk, { recursive: true, force: true });
  });

  it('is a clear reason, and goes on when there is room', async () => {
    const site = await Site.open(engineServer, { PERCH_DATA_DIR: smallDisk });
    try {
      await site.start();
      const [fits, small] = site.stand.model(scaleModel(2), 1);
      const note = randomBytes(10 * 1024 ** 2).toString('hex');
      const [tooBig, big] = site.stand.model(scaleModel(3, { note }), 2);
      site.stand.publish({ [fits]: small, [tooBig]: big });
      await until(() => expect(site.stateOf(fits)).toBe('ready'));
      expect(await site.infer(fits, [1, 1, 1, 1])).toEqual([2, 2, 2, 2]);
      await until(() => expect(site.stand.state?.models[tooBig]?.reason).toMatch(/^no_space: /));
      expect(site.stateOf(tooBig)).toBe('pulling');
      expect(site.agent.running).toBe(true);
      mountTmpfs('remount,size=64m');
      await until(() => expect(site.stateOf(tooBig)).toBe('ready'));
    } finally {
      await site.close();
    }
  });
});

describe('the agent’s command line', () => {
  const fails = (args: string[], env: Record<string, string> = {}) =>
    run(process.execPath, [mainFile, ...args], { env: { PATH: process.env['PATH'], ...env } }).then(
      () => ({ code: 0, stderr: '' }),
      ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
    );

  it('refuses what it does not know and bad settings, each by name', async () => {
    expect(await fails(['--supervise', 'tritonserver'])).toEqual({ code: 2, stderr: expect.stringContaining(' -- ') });
    expect(await fails(['drain'])).toEqual({ code: 2, stderr: expect.stringContaining('PERCH_DATA_DIR') });
    expect(await fails(['--what'])).toEqual({ code: 2, stderr: expect.stringContaining('--what') });
    const { code, stderr } = await fails([], { PERCH_TRITON_HTTP: 'nonsense', PERCH_LABELS: 'a' });
    expect(code).toBe(2);
    for (const name of ['PERCH_CONTROL_URL', 'PERCH_JOIN_KEY', 'PERCH_TRITON_HTTP', 'PERCH_LABELS'])
      expect(stderr).toContain(name);
  });
});
