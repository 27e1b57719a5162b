import { describe, expect, it } from 'vitest';
import { endpointSpec, parseWith } from './index.ts';

const minimal = { name: 'text/minilm', model: { project: 'nlp', name: 'minilm' } };
const parse = (change: object) => parseWith(endpointSpec, { ...minimal, ...change }, 'endpoint');

describe('endpoint spec', () => {
  it('fills in what a user may leave out', () => {
    const spec = parse({});
    expect(spec.traffic.mode).toBe('newest');
    expect(spec.fleet).toEqual({ pool: 'default', replicas: 1, minReplicas: 1 });
    expect(spec.access.inference).toBe('key');
    expect(spec.processing).toBeUndefined();
    expect(endpointSpec.parse(spec)).toEqual(spec);
  });

  it.each([
    [{ name: '/x' }, 'name'],
    [{ name: 'a//b' }, 'name'],
    [{ model: { project: 'nlp', name: 'minilm', version: 3, maxVersions: 2 } }, 'model.version'],
    [{ traffic: { mode: 'weighted' } }, 'traffic.mode'],
    [{ traffic: { mode: 'weighted', weights: { '1': 0 } } }, 'traffic.weights'],
    [{ traffic: { mode: 'weighted', weights: { '1': Number.NaN } } }, 'traffic.weights.1'],
    [{ traffic: { mode: 'weighted', weights: { '1': -1 } } }, 'traffic.weights.1'],
    [{ traffic: { mode: 'weighted', newestFirst: [0, 0] } }, 'traffic.newestFirst'],
    [{ engine: { inputs: [{ name: 'x', type: 'FLOAT', dims: [1] }] } }, 'engine.inputs.0.type'],
    [{ engine: { inputs: [{ name: 'x', type: 'FP32', dims: [0] }] } }, 'engine.inputs.0.dims.0'],
    [{ processing: {} }, 'processing'],
    [{ processing: { builtin: 'a', module: 'b' } }, 'processing'],
    [{ limits: { timeoutMs: 0 } }, 'limits.timeoutMs'],
    [{ unknown: 1 }, 'unknown'],
  ])('%j is refused by its field', (change, field) => {
    expect(() => parse(change)).toThrow(field);
  });
});
