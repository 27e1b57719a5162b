import { describe, expect, it } from 'vitest';
import { builtinOptions, parseBuiltinOptions } from './processing.schema.ts';

describe('options of built-in processing', () => {
  it('have defaults', () => {
    expect(parseBuiltinOptions('passthrough')).toEqual({});
    expect(parseBuiltinOptions('text-embedding', {})).toEqual({
      maxTokens: 256, overlong: 'truncate', padding: 'longest', pooling: 'mean', normalize: true, encoding: 'float', tokenizer: 'tokenizer.json',
    });
  }); // biome-ignore format: one row reads better

  it('are the same when they are parsed again', () => {
    for (const builtin of Object.keys(builtinOptions)) {
      const once = parseBuiltinOptions(builtin, {});
      expect(parseBuiltinOptions(builtin, once)).toEqual(once);
    }
  });

  it.each<[string, unknown, string]>([
    ['maxTokens', { maxTokens: 2 }, 'maxTokens: Too small'],
    ['overlong', { overlong: 'drop' }, 'overlong: Invalid option'],
    ['padding', { padding: 'short' }, 'padding: Invalid input'],
    ['padding.to', { padding: { to: 8 } }, 'padding.to: is 8, less than maxTokens (256)'],
    [
      'padding.multipleOf',
      { padding: { multipleOf: 7 } },
      'padding.multipleOf: is 7, which does not divide maxTokens (256)',
    ],
    ['pooling', { pooling: 'max' }, 'pooling: Invalid option'],
    ['encoding', { pooling: 'none', encoding: 'base64' }, 'encoding: base64 wants pooling mean or cls'],
    ['textField', { textField: '' }, 'textField: a field is 1 to 64 of'],
    ['another field', { maxToken: 5 }, 'Unrecognized key: "maxToken"'],
  ])('name %s when it is wrong', (_field, options, message) => {
    expect(() => parseBuiltinOptions('text-embedding', options)).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) }),
    );
  });
});
