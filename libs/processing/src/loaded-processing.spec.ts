import type { Signature } from '@perch/contracts/plain';
import { describe, expect, it } from 'vitest';
import { filesOf, quietCall } from './call.fake.ts';
import { defineProcessing } from './contract.ts';
import { loadModule } from './loaded-module.ts';
import { loadProcessing } from './loaded-processing.ts';
import { asFloat32, float32 } from './tensor.ts';

const signature: Signature = {
  inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 1] }],
  outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 1] }],
};
const setup = { files: filesOf({ 'labels.txt': 'a\nb' }), signature, maxBatchSize: 4 };

describe('loading a built-in', () => {
  it.each<[string, string, Record<string, unknown>, string, string]>([
    [
      'an unknown built-in',
      'pass',
      {},
      'invalid',
      'processing.builtin: there is no built-in "pass"; there are passthrough, text-tokens, text-embedding',
    ],
    ['a name of the prototype', 'constructor', {}, 'invalid', 'there is no built-in "constructor"'],
    [
      'an unknown option',
      'passthrough',
      { fast: true },
      'invalid',
      'processing.options of passthrough: Unrecognized key: "fast"',
    ],
    [
      'a bad option',
      'text-embedding',
      { maxTokens: 'many' },
      'invalid',
      'processing.options of text-embedding: maxTokens:',
    ],
    [
      'options that contradict one another',
      'text-embedding',
      { maxTokens: 64, padding: { to: 32 } },
      'invalid',
      'padding.to: is 32, less than maxTokens (64)',
    ],
  ])('refuses %s, naming it', async (_what, builtin, options, code, message) => {
    await expect(loadProcessing({ ...setup, builtin, options })).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  });

  it('works without options', async () => {
    const processing = await loadProcessing({ ...setup, builtin: 'passthrough' });
    expect(processing.preprocess(Buffer.from('{"x": 1}'), undefined, quietCall)).toMatchObject({
      inputs: { x: { shape: [1, 1] } },
    });
    await processing.unload();
  });
});

describe('running any module', () => {
  const module = defineProcessing({
    async load({ files }) {
      return { labels: String(await files.read('labels.txt')).split('\n'), unloaded: [] as string[] };
    },
    preprocess: (body: { score: number } | Buffer, { labels }) => ({
      inputs: { x: float32([Buffer.isBuffer(body) ? body.length : body.score], [1, 1]) },
      carry: labels[0],
    }),
    postprocess: (_outputs, { carry, loaded }, ctx) => {
      ctx.count('answers');
      return { label: carry, of: loaded.labels.length };
    },
    unload: ({ unloaded }) => void unloaded.push('once'),
  });

  it('hands on what was loaded, what is carried, and the call', async () => {
    const counted: string[] = [];
    const processing = await loadModule(module, {}, setup);
    const { carry } = await processing.preprocess(Buffer.from('{"score": 2}'), 'application/json', quietCall);
    const call = { ...quietCall, count: (name: string) => void counted.push(name) };
    expect(processing.postprocess({}, carry, call)).toEqual({ label: 'a', of: 2 });
    expect(counted).toEqual(['answers']);
    await processing.unload();
  });

  it.each([
    [undefined, 2], ['application/json', 2], ['application/json; charset=utf-8', 2], ['application/vnd.api+json', 2],
    ['application/x-www-form-urlencoded', 2], ['text/plain', 2], ['APPLICATION/JSON', 2],
    ['image/png', 12], ['application/octet-stream', 12], ['application/jsonp', 12],
  ])('takes a body of type %s as JSON or as bytes', async (type, value) => {
    const processing = await loadModule(module, {}, setup);
    const { inputs } = await processing.preprocess(Buffer.from('{"score": 2}'), type, quietCall);
    expect(new Float32Array(inputs['x']!.bytes.buffer)[0]).toBe(value);
  }); // biome-ignore format: a table

  it('runs a module that loads and carries nothing', async () => {
    const double = defineProcessing({
      preprocess: (body: { x: number[] }) => ({ inputs: { x: float32(body.x, [1, body.x.length]) } }),
      postprocess: (outputs) => ({ y: Array.from(asFloat32(outputs['y']!)) }),
    });
    const processing = await loadModule(double, {}, setup);
    const { inputs, carry } = await processing.preprocess(Buffer.from('{"x": [1, 2]}'), undefined, quietCall);
    expect(processing.postprocess({ y: inputs['x']! }, carry, quietCall)).toEqual({ y: [1, 2] });
    await processing.unload();
  });

  it('passes on what a module throws while it loads', async () => {
    await expect(loadModule(module, {}, { ...setup, files: filesOf({}) })).rejects.toMatchObject({ code: 'not_found' });
  });
});
