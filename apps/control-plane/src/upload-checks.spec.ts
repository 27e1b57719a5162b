import type { UploadSight } from '@perch/registry';
import { describe, expect, it } from 'vitest';
import { uploadChecks } from './upload-checks.ts';

const upload = (texts: Record<string, string>): UploadSight => ({
  files: Object.entries(texts).map(([path, text]) => ({ path, sha256: 'a'.repeat(64), size: text.length })),
  graphs: new Map(),
  text: async (path) => texts[path]!,
});
const golden = {
  request: { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }] },
  outputs: [{ name: 'y', data: [2] }],
};

describe('golden requests of an upload', () => {
  it('are taken when each of them can be asked', async () => {
    const texts = { 'model.onnx': '', 'golden/a.json': JSON.stringify(golden), 'golden/notes.txt': 'not one' };
    expect(await uploadChecks.faults(upload(texts))).toEqual([]);
  });
  it('are refused with the file and what is wrong in it', async () => {
    const unknown = { ...golden, tolerence: { absolute: 1 } };
    const texts = { 'model.onnx': '', 'golden/a.json': '{', 'golden/b.json': JSON.stringify(unknown) };
    expect(await uploadChecks.faults(upload(texts))).toEqual([
      { path: 'golden/a.json', message: expect.stringContaining('is no JSON') },
      { path: 'golden/b.json', message: expect.stringContaining('tolerence') },
    ]);
  });
  it('are so many at most', async () => {
    const names = Array.from({ length: 65 }, (_, at) => [`golden/${at}.json`, JSON.stringify(golden)]);
    expect(await uploadChecks.faults(upload(Object.fromEntries(names)))).toEqual([
      { path: 'golden', message: 'holds 65 golden requests; a version has at most 64' },
    ]);
  });
});
