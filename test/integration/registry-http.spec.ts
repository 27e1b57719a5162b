import type { Version, VersionUpload } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { fileOf, newBytes, send } from '../support/registry.ts';

let plane: TestControlPlane;
beforeAll(async () => {
  plane = await startTestControlPlane();
});
afterAll(() => plane?.close());

const keyOf = async (role: string, projects: string[] = []) =>
  (await plane.call('POST', '/api/v1/keys', { name: role, role, projects })).body.secret as string;
const versions = '/api/v1/models/nlp/minilm/versions';

describe('models and versions over the admin API', () => {
  it('go from create to published, are listed, tagged, described and downloaded', async () => {
    const bytes = newBytes(5_000);
    const body = { files: [fileOf('model.onnx', bytes)], tags: ['prod'], metadata: { owner: 'ann' } };
    const created = await plane.call<VersionUpload>('POST', versions, body);
    expect(created.status).toBe(201);
    const blob = created.body.missing[0]!;
    expect(new URL(blob.url!).origin).toBe(plane.address);
    expect(await send(blob, bytes)).toEqual([200]);
    expect(await plane.call<VersionUpload>('POST', `${versions}/1/uploads`)).toMatchObject({
      status: 200,
      body: { missing: [] },
    });
    expect((await plane.call<Version>('POST', `${versions}/1/complete`)).body).toMatchObject({ state: 'draft' });
    for (const [verb, state] of [
      ['publish', 'published'],
      ['unpublish', 'draft'],
      ['archive', 'archived'],
      ['restore', 'draft'],
      ['publish', 'published'],
    ])
      expect(await plane.call('POST', `${versions}/1/${verb}`)).toMatchObject({ status: 200, body: { state } });
    expect((await plane.call('POST', `${versions}/1/tags`, { add: ['de'], remove: ['prod'] })).body.tags).toEqual([
      'de',
    ]);
    expect((await plane.call('PATCH', `${versions}/1`, { description: 'small' })).body).toMatchObject({
      description: 'small',
      metadata: { owner: 'ann' },
    });
    const listed = await plane.call('GET', '/api/v1/models?tag=de&metadata=owner%3Dann');
    expect(listed.body).toMatchObject({
      items: [{ name: 'minilm', latestPublished: 1, tags: ['de'] }],
      nextCursor: null,
    });
    expect((await plane.call('GET', '/api/v1/models/nlp/minilm')).body).toMatchObject({
      latestVersion: 1,
      versions: 1,
    });
    expect((await plane.call('GET', versions)).body.items).toHaveLength(1);
    expect((await plane.call('GET', `${versions}/1`)).body.files).toEqual(body.files);
    const files = await plane.call('GET', `${versions}/1/files`);
    const fetched = await fetch(files.body.items[0].url);
    expect(Buffer.from(await fetched.arrayBuffer()).equals(bytes)).toBe(true);
    const audit = await plane.call('GET', '/api/v1/audit');
    expect(audit.body.items.map((row: { action: string }) => row.action)).toContain('version.complete');
  });

  it('are changed by publishers of their project only, and read by viewers', async () => {
    const viewer = await keyOf('viewer');
    const other = await keyOf('publisher', ['vision']);
    const file = { files: [fileOf('a.onnx', newBytes())] };
    expect((await plane.call('POST', versions, file, { key: viewer })).status).toBe(403);
    expect((await plane.call('POST', versions, file, { key: other })).status).toBe(403);
    expect((await plane.call('POST', `${versions}/1/archive`, undefined, { key: viewer })).status).toBe(403);
    expect((await plane.call('GET', `${versions}/1`, undefined, { key: viewer })).status).toBe(200);
    expect((await plane.call('GET', `${versions}/1`, undefined, { key: other })).status).toBe(403);
    expect((await plane.call('GET', '/api/v1/models', undefined, { key: other })).body.items).toEqual([]);
    expect((await plane.call('GET', `${versions}/1`)).body.state).toBe('published');
  });

  it.each([
    ['a path with ..', { files: [{ path: '../x', sha256: 'a'.repeat(64), size: 1 }] }, '"../x"'],
    [
      '10,000 files',
      { files: Array.from({ length: 10_000 }, (_, n) => ({ path: `f${n}`, sha256: 'a'.repeat(64), size: 1 })) },
      '2000 files',
    ],
    ['no files', { files: [] }, 'at least one file'],
    ['an unknown field', { files: [fileOf('a', newBytes())], labels: [] }, 'labels'],
  ])('%s is 400 and the problem names it', async (_case, body, words) => {
    const answer = await plane.call('POST', '/api/v1/models/nlp/bad/versions', body);
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid' } });
    expect(answer.body.detail).toContain(words);
    expect((await plane.call('GET', '/api/v1/models/nlp/bad')).status).toBe(404);
  });

  it('answer 404 with the name of what is not there', async () => {
    expect((await plane.call('GET', `${versions}/99`)).body.detail).toBe(
      'version 99 of model nlp/minilm does not exist',
    );
    expect((await plane.call('POST', '/api/v1/models/no/pe/versions/1/publish')).status).toBe(404);
    expect((await plane.call('GET', `${versions}/first`)).status).toBe(400);
  });

  it('are swept by a loop of their own', async () => {
    const metrics = async () => (await fetch(`${plane.address}/metrics`)).text();
    await expect
      .poll(metrics, { timeout: 10_000 })
      .toContain('perch_loop_runs_total{loop="upload-sweep",outcome="ok"}');
  });

  it('serve nothing without a signature', async () => {
    for (const path of ['/store/v1/blobs/x/y', '/store/v1/../../etc/passwd', '/store/v1/%2e%2e/%2e%2e/etc/passwd'])
      expect([403, 404]).toContain((await fetch(`${plane.address}${path}`)).status);
    expect((await fetch(`${plane.address}/store/v1/blobs/x/y`, { method: 'PUT', body: 'x' })).status).toBe(403);
  });
});
