import { describe, expect, it } from 'vitest';
import { checkManifest, createVersion, manifestDigest, parseWith, pathFault, tritonModelName } from './index.ts';

const hash = 'a'.repeat(64);
const file = (path: string, size = 1) => ({ path, sha256: hash, size });

describe('manifest paths', () => {
  it.each(['model.onnx', '1/model.onnx', 'onnx/model.onnx_data', 'naïve.txt', '..a/b'])('takes %s', (path) => {
    expect(pathFault(path)).toBeUndefined();
  });
  it.each([
    '../x',
    'a/../x',
    '/etc/passwd',
    'C:\\x',
    'C:/x',
    'a//b',
    'a/',
    './a',
    '',
    'a\\b',
    'a\nb',
    'x'.repeat(600),
    `${'é'.repeat(130)}/x`,
  ])('refuses %j', (path) => {
    expect(() => parseWith(createVersion, { files: [file(path)] }, 'version')).toThrow(/path|characters/);
  });
  it('refuses ten thousand files, and says the limit', () => {
    const files = Array.from({ length: 10_000 }, (_, n) => file(`f${n}`));
    expect(() => parseWith(createVersion, { files }, 'version')).toThrow(
      'version: files: a version holds at most 2000 files',
    );
  });
  it('refuses one path twice, and a file where a folder is', () => {
    expect(() => checkManifest([file('a'), file('a')])).toThrow('names the file a twice');
    expect(() => checkManifest([file('a'), file('a/b')])).toThrow('a as a file and as a folder of a/b');
  });
});

describe('identities', () => {
  it('a manifest has the same digest in any order, and another with other bytes', () => {
    const digest = manifestDigest([file('a'), file('b')]);
    expect(manifestDigest([file('b'), file('a')])).toBe(digest);
    expect(manifestDigest([file('a'), file('b', 2)])).not.toBe(digest);
  });
  it.each([
    ['MiniLM_L6', 'minilm-l6-v7-aaaaaaaaaaaa'],
    ['42', 'model-v7-aaaaaaaaaaaa'],
    ['7b.chat', 'b-chat-v7-aaaaaaaaaaaa'],
    ['x'.repeat(80), `${'x'.repeat(64)}-v7-aaaaaaaaaaaa`],
  ])('Triton model of %s', (name, wanted) => {
    expect(tritonModelName(name, 7, hash)).toBe(wanted);
  });
});
