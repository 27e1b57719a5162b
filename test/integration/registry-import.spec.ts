import { readdir } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestS3, s3Options, startS3 } from '../support/object-store.ts';
import { missingReason } from '../support/real-parts.ts';
import { newBytes, publisher, sha256Of, startTestRegistry, type TestRegistry } from '../support/registry.ts';

const bytes = newBytes(100_000);
let server: Server;
let origin: string;
let test: TestRegistry;
beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://h');
    const redirect = /^\/redirect\/(.+)$/.exec(pathname)?.[1];
    if (redirect) return response.writeHead(302, { location: decodeURIComponent(redirect) }).end();
    if (pathname === '/old/model.onnx') return response.writeHead(307, { location: '/model.onnx?token=secret' }).end();
    if (pathname === '/loop') return response.writeHead(302, { location: '/loop' }).end();
    if (pathname === '/model.onnx') return response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
    if (pathname === '/stream.bin') return void Readable.from([bytes, bytes]).pipe(response);
    if (pathname === '/cut.bin') {
      response.writeHead(200, { 'content-length': bytes.length });
      return void response.write(bytes.subarray(0, 1_000), () => response.destroy());
    }
    if (pathname === '/silent.bin') return;
    response.writeHead(pathname === '/login' ? 401 : 404).end('no');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  test = await startTestRegistry({ imports: { maxBytes: 150_000, idleMs: 500 } });
});
afterAll(async () => {
  await test?.close();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

const importUrl = (url: string, extra: object = {}, from: TestRegistry = test) =>
  from.registry.createFromUrl(publisher, 'url', 'm', { url, ...extra });
const leftFolders = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('perch-import-'));

describe('a version from a URL', () => {
  it('is fetched, hashed, stored and a draft; its lineage says where from, without secrets', async () => {
    const version = await importUrl(`${origin}/old/model.onnx`, { tags: ['t'] });
    expect(version).toMatchObject({ state: 'draft', framework: 'onnx', tags: ['t'] });
    const again = await importUrl(`${origin}/model.onnx?token=secret`, {
      path: 'w/model.onnx',
      sha256: sha256Of(bytes),
    });
    expect(again.files).toEqual([{ path: 'w/model.onnx', sha256: sha256Of(bytes), size: bytes.length }]);
    expect(again.lineage).toEqual({ sourceUri: `${origin}/model.onnx` });
    const [file] = await test.registry.downloads('url', 'm', again.number);
    expect(Buffer.from(await (await fetch(file!.url)).arrayBuffer()).equals(bytes)).toBe(true);
    expect((await importUrl(`${origin}/model.onnx`, { path: 'w/model.onnx' })).number).toBe(again.number);
  });

  it.each([
    ['what is not there', '/nothing.onnx', {}, 'not_found', '/nothing.onnx answers 404'],
    ['what wants a login', '/login', {}, 'upstream', '/login answers 401'],
    ['another hash', '/model.onnx', { sha256: 'f'.repeat(64) }, 'integrity', `wanted ${'f'.repeat(64)}`],
    ['what breaks off', '/cut.bin', {}, 'upstream', '/cut.bin broke off'],
    ['what is too large, not announced', '/stream.bin', {}, 'too_large', '/stream.bin is over 150000 bytes'],
    ['what redirects for ever', '/loop', {}, 'upstream', '/loop redirects over 5 times'],
    ['what says nothing', '/silent.bin', {}, 'timeout', '/silent.bin sends nothing for 500 ms'],
    [
      'a redirect to a file',
      `/redirect/${encodeURIComponent('file:///etc/passwd')}`,
      {},
      'upstream',
      'redirects to something',
    ],
    [
      'a redirect to the cloud’s credentials',
      `/redirect/${encodeURIComponent('http://169.254.169.254/latest')}`,
      {},
      'forbidden',
      '169.254.169.254',
    ],
    ['a path that leaves', '/model.onnx', { path: '../x' }, 'invalid', '"../x"'],
  ])('%s is refused by name, nothing changes and nothing is left', async (_case, path, extra, code, words) => {
    const before = [await test.everything(), await leftFolders()];
    const failed = importUrl(`${origin}${path}`, extra);
    await expect(failed).rejects.toMatchObject({ code });
    await expect(failed).rejects.toThrow(words);
    expect([await test.everything(), await leftFolders()]).toEqual(before);
  });

  it.each([
    ['http://169.254.169.254/latest/meta-data', 'forbidden'],
    ['http://[fe80::1]/x', 'forbidden'],
    ['http://[::ffff:169.254.169.254]/x', 'forbidden'],
    ['http://0.0.0.0/x', 'forbidden'],
    ['file:///etc/passwd', 'invalid'],
    ['ftp://h/x', 'invalid'],
    ['nonsense', 'invalid'],
    ['s3://bucket/key', 'invalid'], // no S3 settings here
    ['http://127.0.0.1:1/x', 'upstream'],
    ['http://no-such-host.invalid/x', 'upstream'],
  ])('%s is %s', async (url, code) => {
    await expect(importUrl(url)).rejects.toMatchObject({ code });
  });

  it('reaches only the public internet when it is set so, also by name', async () => {
    const strict = await startTestRegistry({ imports: { reach: 'public' } });
    try {
      await expect(importUrl(`${origin}/model.onnx`, {}, strict)).rejects.toMatchObject({ code: 'forbidden' });
      const named = origin.replace('127.0.0.1', 'localhost');
      await expect(importUrl(`${named}/model.onnx`, {}, strict)).rejects.toThrow('private network');
    } finally {
      await strict.close();
    }
  });
});

const reason = missingReason('s3');
describe.skipIf(reason)('a version from an s3:// URL', () => {
  it('is read with the credentials of the store, from any bucket they may read', async () => {
    const s3 = await startS3();
    const { bucket, prefix, ...settings } = s3Options(s3);
    const test = await startTestRegistry({ store: { url: `s3://${bucket}/${prefix}`, s3: settings } });
    try {
      const elsewhere = openTestS3(s3);
      await elsewhere.put('some/model.plan', Readable.from([bytes]), {
        sha256: sha256Of(bytes),
        sizeBytes: bytes.length,
      });
      const url = (await elsewhere.signGet('some/model.plan', new Date(Date.now() + 60_000))).split('?')[0]!;
      const key = new URL(url).pathname.slice(1); // bucket/prefix/some/model.plan
      expect(await importUrl(`s3://${key}`, {}, test)).toMatchObject({ state: 'draft', framework: 'tensorrt' });
      expect((await test.registry.getVersion('url', 'm', 1)).sizeBytes).toBe(bytes.length);
      await expect(importUrl(`s3://${bucket}/nothing`, {}, test)).rejects.toMatchObject({ code: 'not_found' });
    } finally {
      await test.close();
      await s3.stop();
    }
  });
});
