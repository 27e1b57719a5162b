import type { EngineSpec, ModuleFacts } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parseSpec } from '../spec.plan.ts';
import { isModelless, resolveModelless, wantsNoModel } from './modelless.plan.ts';
import { bindModule, boundBuiltin } from './processing.plan.ts';

const file = (path: string) => ({ path, sha256: 'a'.repeat(64), size: 1 });
const bound = (hooks: ModuleFacts['hooks'], digest = 'd') =>
  bindModule(
    { module: 'work/a@1' },
    { name: 'work/a', number: 1, digest: digest.repeat(64), facts: { hooks, body: 'json' }, files: [], description: '', createdAt: '', createdBy: '' },
  ); // biome-ignore format: one record
const worker = bound(['load', 'process']);

describe('whether there is a model', () => {
  it.each<[string, EngineSpec, string[], ReturnType<typeof bound> | ReturnType<typeof boundBuiltin>, boolean]>([
    ['it is said', { platform: 'custom' }, ['model.onnx'], worker, true],
    ['it is said, though nobody does the work', { platform: 'custom' }, [], boundBuiltin(), true],
    ['another platform is said', { platform: 'python' }, ['labels.txt'], worker, false],
    ['no file is one, and a module does the work', {}, ['labels.txt', 'vocab.json'], worker, true],
    ['no file is one, and nobody does the work', {}, ['labels.txt'], bound(['preprocess']), false],
    ['no file is one, and a built-in is there', {}, ['labels.txt'], boundBuiltin(), false],
    ['there is one, and a module that asks it', {}, ['model.onnx', 'labels.txt'], worker, false],
    ['there is one of Python', {}, ['model.py'], worker, false],
    ['a configuration says more', {}, ['config.pbtxt', 'weights.bin'], worker, false],
    ['a Triton folder holds what nobody knows', {}, ['1/weights.bin'], worker, false],
    ['formats are listed', { formatPriority: ['onnxruntime_onnx'] }, ['labels.txt'], worker, false],
    ['a configuration is given', { config: 'backend: "mine"' }, ['weights.bin'], worker, false],
  ])('%s', (_what, engine, paths, processing, wanted) => {
    expect(wantsNoModel(engine, paths.map(file), processing)).toBe(wanted);
  });
});

describe('a deployment without one', () => {
  const spec = parseSpec({ name: 'e', model: { project: 'p', name: 'm' } });
  const version = { number: 4, manifestDigest: 'b'.repeat(64), files: [file('voc.bin'), file('golden/a.json')] };

  it('has no variants, a name for people, and all files that the version holds', () => {
    const { body, tritonModel, digest } = resolveModelless(spec, version, worker);
    expect(isModelless(body)).toBe(true);
    expect(isModelless(null)).toBe(false);
    expect(body.processingFiles.map(({ path }) => path)).toEqual(['voc.bin']);
    expect(tritonModel).toBe(`m-v4-${digest.slice(0, 12)}`);
  });

  it('is another one with other files or another module', () => {
    const { digest } = resolveModelless(spec, version, worker);
    expect(resolveModelless(spec, { ...version, number: 5 }, worker).digest).toBe(digest);
    expect(resolveModelless(spec, { ...version, manifestDigest: 'c'.repeat(64) }, worker).digest).not.toBe(digest);
    expect(resolveModelless(spec, version, bound(['process'], 'e')).digest).not.toBe(digest);
  });

  it('wants somebody who does the work', () => {
    expect(() => resolveModelless(spec, version, bound(['preprocess']))).toThrow(
      'it has no model, so its processing wants a module with a process hook that does the work; module work/a@1 has none',
    );
  });
});
