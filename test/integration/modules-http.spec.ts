import { bundlePath, type ModuleUpload, type ProcessingModuleRecord } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { fileOf, newBytes, send } from '../support/registry.ts';

let plane: TestControlPlane;
beforeAll(async () => {
  plane = await startTestControlPlane();
});
afterAll(() => plane?.close());

const keyOf = async (role: string, projects: string[] = []) =>
  (await plane.call('POST', '/api/v1/keys', { name: `${role}${projects}`, role, projects })).body.secret as string;
const at = (name: string) => `/api/v1/modules/${encodeURIComponent(name)}`;
const facts = { hooks: ['preprocess'], body: 'json', task: 'ocr' };

async function register(name: string, bundle: Buffer, key?: string) {
  const body = { facts, files: [fileOf(bundlePath, bundle)] };
  const upload = await plane.call<ModuleUpload>('POST', `${at(name)}/uploads`, body, { key });
  if (upload.status !== 200) return upload;
  for (const blob of upload.body.missing) expect(await send(blob, bundle)).toEqual([200]);
  return plane.call<ProcessingModuleRecord>('POST', at(name), body, { key });
}

describe('processing modules over the admin API', () => {
  it('are sent, registered, listed, shown, downloaded and deleted, and each change is written down', async () => {
    const bundle = newBytes(2_000);
    expect(await register('ocr/lines', bundle)).toMatchObject({ status: 201, body: { name: 'ocr/lines', number: 1 } });
    expect(await register('ocr/lines', newBytes())).toMatchObject({ body: { number: 2 } });
    expect(await register('ocr/words', newBytes())).toMatchObject({ body: { number: 1 } });
    const first = await plane.call('GET', '/api/v1/modules?task=ocr&limit=1');
    expect(first.body).toMatchObject({ items: [{ name: 'ocr/lines', number: 2 }] });
    const second = await plane.call('GET', `/api/v1/modules?task=ocr&limit=1&cursor=${first.body.nextCursor}`);
    expect(second.body).toMatchObject({ items: [{ name: 'ocr/words' }], nextCursor: null });
    expect((await plane.call('GET', '/api/v1/modules?task=other')).body.items).toEqual([]);
    const numbers = await plane.call('GET', at('ocr/lines'));
    expect(numbers.body.items.map(({ number }: ProcessingModuleRecord) => number)).toEqual([2, 1]);
    expect((await plane.call('GET', `${at('ocr/lines')}/1`)).body.files).toEqual([fileOf(bundlePath, bundle)]);
    const files = await plane.call('GET', `${at('ocr/lines')}/1/files`);
    const fetched = await fetch(files.body.items[0].url);
    expect(Buffer.from(await fetched.arrayBuffer()).equals(bundle)).toBe(true);
    expect(await plane.call('DELETE', `${at('ocr/lines')}/1`)).toMatchObject({ status: 204 });
    expect(await plane.call('GET', `${at('ocr/lines')}/1`)).toMatchObject({ status: 404 });
    const audit = await plane.call('GET', '/api/v1/audit?limit=500');
    const rows = audit.body.items.filter(({ subject }: { subject: string }) => subject.startsWith('ocr/lines'));
    expect(
      rows.map(({ action, subject }: { action: string; subject: string }) => `${action} ${subject}`).sort(),
    ).toEqual(['module.delete ocr/lines@1', 'module.register ocr/lines@1', 'module.register ocr/lines@2']);
    const events = await plane.database.query(`select type from outbox where type like 'module.%'`);
    expect(events.length).toBeGreaterThanOrEqual(4);
  });

  it('are written by publishers, in their own projects, and read by viewers', async () => {
    const [viewer, operator] = [await keyOf('viewer'), await keyOf('publisher', ['nlp'])];
    expect(await register('nlp/mine', newBytes(), viewer)).toMatchObject({ status: 403 });
    expect(await register('nlp/mine', newBytes(), operator)).toMatchObject({ status: 201 });
    const other = await register('vision/theirs', newBytes(), operator);
    expect(other).toMatchObject({ status: 403, body: { detail: expect.stringContaining('nlp/…') } });
    expect(await plane.call('GET', at('nlp/mine'), undefined, { key: viewer })).toMatchObject({ status: 200 });
    expect(await plane.call('DELETE', `${at('nlp/mine')}/1`, undefined, { key: viewer })).toMatchObject({
      status: 403,
    });
    expect(await plane.call('GET', '/api/v1/modules', undefined, { key: 'no-key' })).toMatchObject({ status: 401 });
  });

  it.each([
    ['a name with capitals', 'OCR', { facts, files: [fileOf(bundlePath, newBytes())] }, 'a module name is'],
    ['no bundle', 'x', { facts, files: [fileOf('a.mjs', newBytes())] }, bundlePath],
    ['an unknown hook', 'x', { facts: { hooks: ['boot'] }, files: [fileOf(bundlePath, newBytes())] }, 'hooks'],
    ['a field that is none', 'x', { facts, files: [fileOf(bundlePath, newBytes())], number: 7 }, 'number'],
  ])('refuse %s', async (_why, name, body, words) => {
    const refused = await plane.call('POST', `${at(name)}/uploads`, body);
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).toContain(words);
  });
});
