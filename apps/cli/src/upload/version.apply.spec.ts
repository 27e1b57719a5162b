import { createHash } from 'node:crypto';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { AppError, type BlobUpload, manifestDigest, type Version, type VersionUpload } from '@perch/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AdminClient } from '../admin.client.ts';
import { findFiles } from './manifest.source.ts';
import { uploadVersion } from './version.apply.ts';

const partSize = 1_000;

/** A control plane and its artifact store in memory; `send` answers what the test puts in its way first. */
class Registry {
  versions: Version[] = [];
  readonly parts = new Map<string, Buffer>();
  readonly calls: string[] = [];
  faults: (number | Error)[] = [];
  expired = false;
  private wanted: { path: string; sha256: string; size: number }[] = [];

  async list(): Promise<Version[]> {
    if (this.versions.length === 0) throw new AppError('not_found', 'no such model');
    return this.versions;
  }

  async call(path: string, { body }: { body?: { files: never[] } } = {}): Promise<unknown> {
    this.calls.push(path);
    if (path.endsWith('/complete')) return this.complete();
    if (path.endsWith('/uploads')) return this.upload();
    this.wanted = body?.files ?? [];
    const number = this.versions.length + 1;
    const digest = manifestDigest(this.wanted);
    this.versions.push({ project: 'p', name: 'm', number, state: 'uploading', manifestDigest: digest } as Version);
    return this.upload();
  }

  private upload(): VersionUpload {
    this.expired = false;
    const missing = this.wanted.map(({ sha256, size }): BlobUpload => {
      const count = Math.max(1, Math.ceil(size / partSize));
      const parts = Array.from({ length: count }, (_, at) => ({ partNumber: at + 1, url: `${sha256}/${at + 1}` }));
      const partsDone = parts.filter(({ url }) => this.parts.has(url)).map(({ partNumber }) => partNumber);
      return {
        sha256,
        size,
        method: 'multipart',
        partSize,
        partCount: count,
        parts,
        partsDone,
        uploadId: 'u',
        expiresAt: '',
      };
    });
    return { version: this.versions.at(-1) as Version, missing };
  }

  private complete(): Version {
    for (const { sha256, size } of this.wanted) {
      const count = Math.max(1, Math.ceil(size / partSize));
      const all = Buffer.concat(
        Array.from({ length: count }, (_, at) => this.parts.get(`${sha256}/${at + 1}`) ?? Buffer.alloc(0)),
      );
      if (createHash('sha256').update(all).digest('hex') !== sha256)
        throw new AppError('integrity', `blob ${sha256} does not match`);
    }
    const done = { ...(this.versions.at(-1) as Version), state: 'draft' as const };
    this.versions[this.versions.length - 1] = done;
    return done;
  }

  async send(url: string, _headers: object, body: Readable | Buffer, size: number) {
    const chunks: Buffer[] = [];
    if (Buffer.isBuffer(body)) chunks.push(body);
    else for await (const chunk of body) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    expect(bytes.length).toBe(size);
    const fault = this.expired ? 403 : this.faults.shift();
    if (fault instanceof Error) throw fault;
    if (fault !== undefined) return { status: fault, headers: {}, body: Buffer.from('the store says no') };
    this.parts.set(url, bytes);
    return { status: 200, headers: {}, body: Buffer.alloc(0) };
  }
}

let folder: string;
let registry: Registry;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch upload '));
  await writeFile(join(folder, 'model.onnx'), Buffer.alloc(10_500, 7));
  await writeFile(join(folder, 'tokenizer.json'), '{}');
  await writeFile(join(folder, 'empty'), '');
  registry = new Registry();
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function upload(always = false) {
  const { files } = await findFiles(folder);
  return uploadVersion(registry as unknown as AdminClient, {
    model: { project: 'p', name: 'm' },
    files,
    always,
    progress: false,
  });
}

describe('an upload', () => {
  it('sends every part once and completes', async () => {
    const { version, outcome, sentBytes } = await upload();
    expect([version.number, version.state, outcome, sentBytes]).toEqual([1, 'draft', 'created', 10_502]);
    expect(registry.parts.size).toBe(13);
  });
  it('tries a part again after a lost connection and a busy store', async () => {
    registry.faults = [new Error('ECONNRESET'), 503, 500];
    expect((await upload()).version.state).toBe('draft');
  });
  it('asks for fresh URLs when they have expired in the middle', async () => {
    const send = registry.send.bind(registry);
    let sent = 0;
    registry.send = async (...args) => {
      sent += 1;
      if (sent === 5) registry.expired = true;
      return send(...args);
    };
    expect((await upload()).version.state).toBe('draft');
    expect(registry.calls.filter((path) => path.endsWith('/uploads')).length).toBeGreaterThan(0);
  });
  it('goes on after a cut, sending only what is missing', async () => {
    const send = registry.send.bind(registry);
    let sent = 0;
    registry.send = async (...args) => {
      sent += 1;
      if (sent > 6) return { status: 400, headers: {}, body: Buffer.from('cut') };
      return send(...args);
    };
    await expect(upload()).rejects.toThrow(/refused it \(400\)/);
    const kept = registry.parts.size;
    expect(kept).toBe(6);
    registry.send = send;
    const { version, outcome } = await upload();
    expect([version.number, outcome]).toEqual([1, 'resumed']);
    expect(registry.parts.size).toBe(13);
  });
  it('makes no second version of the same bytes unless it is told to', async () => {
    await upload();
    expect(await upload()).toMatchObject({ outcome: 'already there', sentBytes: 0, version: { number: 1 } });
    expect(await upload(true)).toMatchObject({ outcome: 'created', version: { number: 2 } });
  });
  it('makes another version of other bytes', async () => {
    await upload();
    await writeFile(join(folder, 'model.onnx'), Buffer.alloc(10_500, 8));
    expect(await upload()).toMatchObject({ outcome: 'created', version: { number: 2 } });
  });
});

describe('an upload that must not come about', () => {
  it('says the words of the store when it refuses the bytes', async () => {
    registry.faults = Array(20).fill(400);
    await expect(upload()).rejects.toThrow(/refused it \(400\): the store says no/);
    expect(registry.versions[0]?.state).toBe('uploading');
  });
  it('gives up when nobody answers, and says how to go on', async () => {
    registry.faults = Array(60).fill(new Error('ECONNRESET'));
    await expect(upload()).rejects.toThrow(/upload again to go on/);
  });
  it('stops when a file changes after it was hashed', async () => {
    const call = registry.call.bind(registry);
    registry.call = async (...args) => {
      await writeFile(join(folder, 'model.onnx'), Buffer.alloc(10_500, 9));
      await utimes(join(folder, 'model.onnx'), 1, 1);
      return call(...args);
    };
    await expect(upload()).rejects.toThrow(/model\.onnx changed after it was hashed/);
    expect(registry.versions[0]?.state).toBe('uploading');
  });
});
