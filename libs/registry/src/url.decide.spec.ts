import { describe, expect, it } from 'vitest';
import { pathOfUrl } from './url.decide.ts';

describe('pathOfUrl', () => {
  it.each([
    ['https://h/models/minilm.onnx?token=x', 'minilm.onnx'],
    ['https://h/a%20b.onnx', 'a-b.onnx'],
    ['https://h/', 'model'],
    ['https://h/%E0%A4', '-E0-A4'],
    ['s3://bucket/a/b/model.plan', 'model.plan'],
    ['https://h/..%2F..%2Fetc', '..-..-etc'],
  ])('%s → %s', (url, path) => expect(pathOfUrl(new URL(url))).toBe(path));
});
