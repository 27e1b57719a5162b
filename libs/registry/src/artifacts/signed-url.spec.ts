import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Grant, readGrant, signGrant, storePath } from './signed-url.ts';

const key = 'a signing key';
const now = 1_790_000_000_000;
const grant: Grant = {
  method: 'PUT',
  key: 'blobs/ab/cd',
  expiresAtMs: now + 1_000,
  sizeBytes: 10,
  sha256: 'f'.repeat(64),
};
const partGrant: Grant = {
  method: 'PUT',
  key: 'blobs/ab/cd',
  expiresAtMs: now + 1,
  sizeBytes: 5,
  uploadId: 'u',
  partNumber: 2,
};

const parse = (url: string) => {
  const at = new URL(url, 'http://h');
  return { key: at.pathname.slice(storePath.length), query: Object.fromEntries(at.searchParams) };
};
const read = (url: string, method = 'PUT', nowMs = now, signingKey = key) => {
  const { key: object, query } = parse(url);
  return readGrant(signingKey, method, object, query, nowMs);
};

describe('signed URLs of the folder store', () => {
  it.each([grant, partGrant, { ...grant, method: 'GET' as const, sizeBytes: undefined, sha256: undefined }])(
    'give back what was granted: %j',
    (given) => expect(read(signGrant(key, given), given.method)).toMatchObject(JSON.parse(JSON.stringify(given))),
  );

  it('are refused after their time, for another method, and under another key', () => {
    const url = signGrant(key, grant);
    expect(() => read(url, 'PUT', now + 1_000)).toThrow('expired');
    expect(() => read(url, 'GET')).toThrow('does not fit');
    expect(() => read(url, 'PUT', now, 'another key')).toThrow('does not fit');
  });

  it('are refused with any part changed, left out or added', () => {
    const { key: object, query } = parse(signGrant(key, grant));
    const changed = {
      method: 'GET',
      expires: String(now + 9_999),
      size: '11',
      sha256: '0'.repeat(64),
      signature: '00',
    };
    for (const [name, value] of Object.entries(changed)) {
      expect(() => readGrant(key, 'PUT', object, { ...query, [name]: value }, now), name).toThrow();
      expect(() => readGrant(key, 'PUT', object, { ...query, [name]: undefined }, now), name).toThrow();
    }
    expect(() => readGrant(key, 'PUT', object, { ...query, upload: 'u' }, now)).toThrow();
    expect(() => readGrant(key, 'PUT', `${object}x`, query, now)).toThrow();
  });

  it('never throw anything but forbidden, whatever the query', () => {
    const texts = fc.dictionary(
      fc.constantFrom('method', 'expires', 'size', 'sha256', 'upload', 'part', 'signature'),
      fc.string(),
    );
    fc.assert(
      fc.property(texts, fc.string(), (query, object) => {
        expect(() => readGrant(key, 'PUT', object, query, now)).toThrow('signed URL');
      }),
    );
  });
});
