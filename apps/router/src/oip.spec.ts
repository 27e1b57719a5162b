import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renameDocument, renameInferReply } from './oip-names.ts';
import { readOipTarget } from './oip-target.ts';

describe('readOipTarget', () => {
  it.each([
    ['e', 'e', undefined, ''],
    ['e/infer', 'e', undefined, '/infer'],
    ['text%2Fe/infer', 'text/e', undefined, '/infer'],
    ['text/e/infer', 'text/e', undefined, '/infer'],
    ['text%252Fe/ready', 'text/e', undefined, '/ready'],
    ['e/versions/7/infer', 'e', 7, '/infer'],
    ['a/b/versions/7', 'a/b', 7, ''],
    ['infer', 'infer', undefined, ''],
    ['e%2Finfer', 'e/infer', undefined, ''],
  ])('%s', (path, endpoint, version, action) => {
    expect(readOipTarget(path)).toEqual({ endpoint, version, action });
  });
  it.each(['', 'e/versions/x/infer', 'e/versions/0', '%E0%A4%A/infer'])('refuses %j', (path) => {
    expect(readOipTarget(path)).toBeUndefined();
  });
});

describe('renameInferReply', () => {
  const names = { tritonModel: 'e-v1-abc', tritonVersion: '1', endpoint: 'text/e', version: 7 };
  const renamed = (json: string, tensors: Buffer, binary: boolean) => {
    const body = Buffer.concat([Buffer.from(json), tensors]);
    const headerLength = binary ? Buffer.byteLength(json) : undefined;
    const got = renameInferReply({ contentType: 'x', headerLength, body, sent: true }, names);
    const bytes = Buffer.concat(got.body);
    return {
      got,
      json: JSON.parse(bytes.toString('utf8', 0, got.headerLength)),
      rest: bytes.subarray(got.headerLength ?? bytes.length),
    };
  };

  it('changes the two names and nothing else, whatever id the client gave', () => {
    fc.assert(
      fc.property(fc.option(fc.string()), fc.uint8Array(), fc.boolean(), fc.boolean(), (id, bytes, binary, blanks) => {
        const text = id === null ? undefined : `${id}"model_name":"e-v1-abc","model_version":"1"`;
        const reply = {
          id: text,
          model_name: 'e-v1-abc',
          model_version: '1',
          outputs: [{ name: 'model_name', data: ['e-v1-abc'] }],
        };
        const tensors = binary ? Buffer.from(bytes) : Buffer.alloc(0);
        const { json, rest } = renamed(JSON.stringify(reply, undefined, blanks ? 1 : undefined), tensors, binary);
        expect(json).toEqual(JSON.parse(JSON.stringify({ ...reply, model_name: 'text/e', model_version: '7' })));
        expect(rest.equals(tensors)).toBe(true);
      }),
    );
  });

  it('knows the version that the model server was asked for', () => {
    const body = Buffer.from('{"model_name":"e-v1-abc","model_version":"3","outputs":[]}');
    const reply = { contentType: 'x', headerLength: undefined, body, sent: true };
    const parts = renameInferReply(reply, { ...names, tritonVersion: '3' }).body;
    expect(parts.length).toBe(3); // replaced in place, not parsed
    expect(Buffer.concat(parts).toString()).toBe('{"model_name":"text/e","model_version":"7","outputs":[]}');
  });

  it('renames configuration and statistics', () => {
    const body = Buffer.from('{"model_stats":[{"name":"e-v1-abc","version":"1"}]}');
    expect(JSON.parse(renameDocument(body, names).toString())).toEqual({
      model_stats: [{ name: 'text/e', version: '7' }],
    });
  });
});
