import { describe, expect, it } from 'vitest';
import { factsOf } from './facts.plan.ts';

const seen = (module: Record<string, unknown>) => ({
  types: Object.fromEntries(Object.entries(module).map(([key, value]) => [key, typeof value])),
  plain: Object.fromEntries(Object.entries(module).filter(([, value]) => typeof value !== 'function')),
});
const hook = () => undefined;

describe('what a module declares', () => {
  it('is found in its default export', () => {
    expect(factsOf(seen({ load: hook, preprocess: hook, postprocess: hook, task: 'ocr' }))).toEqual({
      facts: { hooks: ['load', 'preprocess', 'postprocess'], body: 'json', task: 'ocr' },
      unknown: [],
    });
    const inputs = [{ name: 'image', datatype: 'BYTES', shape: [1] }];
    expect(factsOf(seen({ process: hook, body: 'json-bytes', inputs, color: 1 }))).toEqual({
      facts: { hooks: ['process'], body: 'json-bytes', inputs },
      unknown: ['color'],
    });
  });

  it.each([
    ['a hook that is no function', { preprocess: 3 }, 'preprocess is no function but number'],
    ['nothing to do', { load: hook, unload: hook }, 'neither preprocess nor process'],
    ['postprocess alone', { postprocess: hook }, 'neither preprocess nor process'],
    ['a task with blanks', { preprocess: hook, task: 'Text Things' }, 'task'],
    ['an unknown kind of body', { preprocess: hook, body: 'xml' }, 'body'],
    ['inputs of an unknown type', { process: hook, inputs: [{ name: 'x', datatype: 'FP8', shape: [] }] }, 'inputs'],
  ])('refuses %s', (_name, module, words) =>
    expect(() => factsOf(seen(module))).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringContaining(words) }),
    ),
  );
});
