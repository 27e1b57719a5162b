import { pipelineSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { type NodeModel, planEnsemble } from './ensemble.plan.ts';

const model = (name: string, more: Partial<NodeModel> = {}): NodeModel => ({
  name,
  maxBatchSize: 8,
  inputs: [{ name: 'x', data_type: 'TYPE_FP32', dims: [4] }],
  outputs: [{ name: 'y', data_type: 'TYPE_FP32', dims: ['4'] }],
  processing: null,
  ...more,
});
const a = { endpoint: 'e/a', input: { x: '$body.x' } };
const b = { endpoint: 'e/b', input: { x: '$a.y' } };
const plan = (nodes: object, output: unknown = { z: '$b.y' }, more: Record<string, Partial<NodeModel>> = {}) => {
  const spec = pipelineSpec.parse({ kind: 'Pipeline', name: 'p/q', nodes, output });
  const models = new Map(Object.keys(nodes).map((node) => [node, model(`m-${node}`, more[node])]));
  return planEnsemble('p-q', spec, models);
};

describe('the ensemble that does what a pipeline does', () => {
  it('steps through the models, with tensors named as the reply names them', () => {
    expect(plan({ a, b }, { z: '$b.y', first: '$a.y' })).toEqual({
      text: `name: "p-q"
platform: "ensemble"
max_batch_size: 8
input [
  { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
]
output [
  { name: "z" data_type: TYPE_FP32 dims: [ 4 ] },
  { name: "first" data_type: TYPE_FP32 dims: [ 4 ] }
]
ensemble_scheduling {
  step [
    {
      model_name: "m-a" model_version: -1
        input_map { key: "x" value: "x" }
        output_map { key: "y" value: "first" }
    },
    {
      model_name: "m-b" model_version: -1
        input_map { key: "x" value: "first" }
        output_map { key: "y" value: "z" }
    }
  ]
}
`,
    });
  });

  it.each<[string, ReturnType<typeof plan>, string]>([
    ['a condition', plan({ a, b: { ...b, when: { pick: '$a.y' } } }), 'node b has when'],
    ['a list', plan({ a, b: { ...b, map: { over: '$a.y' } } }), 'node b has map'],
    ['a time limit', plan({ a, b: { ...b, timeoutMs: 5 } }), 'node b has timeoutMs'],
    ['processing', plan({ a, b }, undefined, { b: { processing: 'clip' } }), 'node b has processing of its own (clip)'],
    ['a part of a tensor', plan({ a, b: { ...b, input: { x: '$a.y[0]' } } }), 'nodes.b.input.x is not one whole tensor'],
    ['a fixed value', plan({ a, b: { ...b, input: { x: '$a.y', k: 1 } } }), 'nodes.b.input.k is not one whole tensor'],
    ['the whole body', plan({ a: { endpoint: 'e/a' }, b }), 'nodes.a.input is no object of picks'],
    ['a reply that is a list', plan({ a, b }, ['$b.y']), 'output is no object of picks'],
    ['an input as the reply', plan({ a, b }, { z: '$b.y', q: '$body.x' }), "output.q is the request's own x"],
    ['a reply of an unknown tensor', plan({ a, b }, { z: '$b.q' }), 'output.z is nothing that a node answers'],
    ['batches and none', plan({ a, b }, undefined, { b: { maxBatchSize: 0 } }), 'some of its models batch'],
    ['a module', plan({ a, b: { module: 'm', input: { x: '$a.y' } } }), 'node b is a module'],
  ])('there is none for %s', (_what, found, why) => expect(found).toMatchObject({ why: expect.stringContaining(why) })); // biome-ignore format: a table
});
