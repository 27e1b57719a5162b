import type { Signature } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DeclaredGraph, graphFaults } from './graph.plan.ts';

const graph = (inputs: number[], outputs: number[] = [-1, 384]): Signature => ({
  inputs: [{ name: 'ids', datatype: 'INT64', shape: inputs }],
  outputs: [{ name: 'out', datatype: 'FP32', shape: outputs }],
});
const ids = (dims: number[], more: object = {}) => ({ inputs: [{ name: 'ids', type: 'INT64', dims, ...more }] });

describe('what a configuration says against a graph', () => {
  it.each<[string, DeclaredGraph, Signature]>([
    ['nothing declared, no batch', { maxBatchSize: 0 }, graph([1, 128], [1, 384])],
    ['nothing declared, a free batch', { maxBatchSize: 8 }, graph([-1, 128])],
    ['free where the graph is free', { maxBatchSize: 8, ...ids([-1]) }, graph([-1, -1])],
    ['fixed where the graph is free', { maxBatchSize: 8, ...ids([128]) }, graph([-1, -1])],
    ['whole shapes without a batch', { maxBatchSize: 0, ...ids([-1, -1]) }, graph([-1, -1])],
    ['reshaped to what the graph sees', { maxBatchSize: 8, ...ids([4, 4], { reshape: [16] }) }, graph([-1, 16])],
    ['one element for a scalar', { maxBatchSize: 0, ...ids([1]) }, graph([])],
  ])('%s is fine', (_what, said, of) => expect(graphFaults(said, of)).toEqual([])); // biome-ignore format: one row a case

  it.each<[string, DeclaredGraph, Signature, string]>([
    [
      'a fixed batch, nothing declared',
      { maxBatchSize: 8 },
      graph([1, -1]),
      'input "ids": dimension 0 (batch) is fixed at 1 in the graph [1, -1] and max_batch_size above 0 wants it free: export it again with dynamic_axes={"ids": {0: "batch"}} of torch.onnx.export (dynamic_shapes with dynamo=True), or set max batch size 0',
    ],
    ['a fixed batch of an output', { maxBatchSize: 8, ...ids([-1]) }, graph([-1, -1], [1, 384]), 'output "out": dimension 0 (batch) is fixed at 1'],
    [
      'a fixed length',
      { maxBatchSize: 8, ...ids([-1]) },
      graph([-1, 128]),
      'input "ids": dimension 1 is fixed at 128 in the graph [-1, 128] and the configuration says -1: export it again with dynamic_axes={"ids": {1: "sequence"}} of torch.onnx.export (dynamic_shapes with dynamo=True), or declare 128',
    ],
    ['a fixed length without a batch', { maxBatchSize: 0, ...ids([1, -1]) }, graph([1, 128]), 'dynamic_axes={"ids": {1: "dim_1"}}'],
    ['behind a reshape', { maxBatchSize: 8, ...ids([-1], { reshape: [-1, 1] }) }, graph([-1, 16, 1]), 'dimension 1 is fixed at 16'],
    ['another size', { maxBatchSize: 8, ...ids([64]) }, graph([-1, 128]), 'dimension 1 is 128 in the graph and 64 in the configuration'],
    ['another rank', { maxBatchSize: 8, ...ids([-1, -1]) }, graph([-1, -1]), 'has 2 dimensions in the graph [-1, -1] and 3 in the configuration [-1, -1, -1], batch included'],
    ['another type', { maxBatchSize: 0, inputs: [{ name: 'ids', type: 'INT32', dims: [-1] }] }, graph([-1]), 'is INT64 in the graph and INT32 in the configuration'],
    ['another name', { maxBatchSize: 0, inputs: [{ name: 'input_ids', type: 'INT64', dims: [-1] }] }, graph([-1]), 'the graph has no input "input_ids"; it has ids'],
  ])('%s is named', (_what, said, of, words) => expect(graphFaults(said, of).join('; ')).toContain(words)); // biome-ignore format: one row a case

  it('never speaks against what was declared from the graph itself', () => {
    const shape = fc.array(fc.oneof(fc.constant(-1), fc.integer({ min: 1, max: 9 })), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(shape, shape, (inputs, outputs) => {
        const of = graph(inputs, outputs);
        const declared = (tensors: Signature['inputs']) =>
          tensors.map(({ name, datatype, shape: dims }) => ({ name, type: datatype, dims }));
        const said = { maxBatchSize: 0, inputs: declared(of.inputs), outputs: declared(of.outputs) };
        expect(graphFaults(said, of)).toEqual([]);
        const free = { maxBatchSize: 1 };
        expect(graphFaults(free, of).length).toBe([inputs, outputs].filter(([first]) => first !== -1).length);
      }),
    );
  });
});
