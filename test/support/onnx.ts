import type { DataType } from '@perch/contracts';
import onnxProto from 'onnx-proto';

const { onnx } = onnxProto;

/** ONNX's numbers of element types. */
const elementType: Record<DataType, number> = {
  FP32: 1, UINT8: 2, INT8: 3, UINT16: 4, INT16: 5, INT32: 6, INT64: 7, BYTES: 8, BOOL: 9, FP16: 10, FP64: 11,
  UINT32: 12, UINT64: 13, BF16: 16,
}; // biome-ignore format: one row reads better

type Size = number | string;
interface GraphTensor {
  name: string;
  type: DataType;
  /** A text is a size that may differ from request to request; the same text is the same size. */
  shape: Size[];
}
interface GraphNode {
  op: string;
  inputs: string[];
  outputs: string[];
}
interface Constant {
  name: string;
  type: DataType;
  dims: number[];
  bytes: Uint8Array;
}

const valueInfo = ({ name, type, shape }: GraphTensor) => ({
  name,
  type: {
    tensorType: {
      elemType: elementType[type],
      shape: { dim: shape.map((size) => (typeof size === 'string' ? { dimParam: size } : { dimValue: size })) },
    },
  },
});

/** Bytes of a `model.onnx`. `note` goes into the file as it stands: two notes are two files that compute the same. */
export function onnxModel(graph: {
  inputs: GraphTensor[];
  outputs: GraphTensor[];
  nodes: GraphNode[];
  constants?: Constant[];
  note?: string;
}): Uint8Array {
  return onnx.ModelProto.encode(
    onnx.ModelProto.create({
      irVersion: 8,
      producerName: 'perch-tests',
      docString: graph.note ?? '',
      opsetImport: [{ domain: '', version: 13 }],
      graph: {
        name: 'graph',
        input: graph.inputs.map(valueInfo),
        output: graph.outputs.map(valueInfo),
        node: graph.nodes.map(({ op, inputs, outputs }) => ({
          opType: op,
          input: inputs,
          output: outputs,
          name: outputs[0],
        })),
        initializer: (graph.constants ?? []).map(({ name, type, dims, bytes }) => ({
          name,
          dataType: elementType[type],
          dims,
          rawData: bytes,
        })),
      },
    }),
  ).finish();
}

export const floats = (...values: number[]): Uint8Array => new Uint8Array(new Float32Array(values).buffer);
const longs = (...values: number[]): Uint8Array => new Uint8Array(new BigInt64Array(values.map(BigInt)).buffer);

/** `y = factor · x`, both FP32 `[batch, width]`: two factors are two versions whose answers tell them apart. */
export const scaleModel = (factor: number, options: { width?: number; note?: string } = {}): Uint8Array => {
  const shape = ['batch', options.width ?? 4];
  return onnxModel({
    inputs: [{ name: 'x', type: 'FP32', shape }],
    outputs: [{ name: 'y', type: 'FP32', shape }],
    nodes: [{ op: 'Mul', inputs: ['x', 'factor'], outputs: ['y'] }],
    constants: [{ name: 'factor', type: 'FP32', dims: [], bytes: floats(factor) }],
    note: options.note,
  });
};

/** `sum = a + b` and `difference = a − b`, FP32 `[batch, length]` with any length. */
export const addModel = (): Uint8Array => {
  const of = (name: string): GraphTensor => ({ name, type: 'FP32', shape: ['batch', 'length'] });
  return onnxModel({
    inputs: [of('a'), of('b')],
    outputs: [of('sum'), of('difference')],
    nodes: [
      { op: 'Add', inputs: ['a', 'b'], outputs: ['sum'] },
      { op: 'Sub', inputs: ['a', 'b'], outputs: ['difference'] },
    ],
  });
};

/** `y = x` of any type, `[batch, length]`. */
export const identityModel = (type: DataType): Uint8Array =>
  onnxModel({
    inputs: [{ name: 'x', type, shape: ['batch', 'length'] }],
    outputs: [{ name: 'y', type, shape: ['batch', 'length'] }],
    nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
  });

/** `y = table[x]` with ten entries: an index of ten or more makes the run fail in onnxruntime's own words. */
export const gatherModel = (): Uint8Array =>
  onnxModel({
    inputs: [{ name: 'x', type: 'INT64', shape: ['batch', 1] }],
    outputs: [{ name: 'y', type: 'FP32', shape: ['batch', 1] }],
    nodes: [{ op: 'Gather', inputs: ['table', 'x'], outputs: ['y'] }],
    constants: [{ name: 'table', type: 'FP32', dims: [10], bytes: floats(...Array.from({ length: 10 }, (_, i) => i)) }],
  });

/** `y = x · m · m · …`, FP32 `[batch, 512]`: each multiplication of one row costs half a million operations; a way to keep a server busy. */
export const heavyModel = (multiplications: number, width = 512): Uint8Array => {
  const shape = ['batch', width];
  const step = (i: number) => (i === 0 ? 'x' : i === multiplications ? 'y' : `step${i}`);
  const matrix = new Float32Array(width * width);
  for (let i = 0; i < width; i += 1) matrix[i * width + i] = 1;
  return onnxModel({
    inputs: [{ name: 'x', type: 'FP32', shape }],
    outputs: [{ name: 'y', type: 'FP32', shape }],
    nodes: Array.from({ length: multiplications }, (_, i) => ({
      op: 'MatMul',
      inputs: [step(i), 'matrix'],
      outputs: [step(i + 1)],
    })),
    constants: [{ name: 'matrix', type: 'FP32', dims: [width, width], bytes: new Uint8Array(matrix.buffer) }],
  });
};

/** A graph that onnxruntime refuses: it names an operator that does not exist. */
export const unknownOperatorModel = (): Uint8Array =>
  onnxModel({
    inputs: [{ name: 'x', type: 'FP32', shape: ['batch', 4] }],
    outputs: [{ name: 'y', type: 'FP32', shape: ['batch', 4] }],
    nodes: [{ op: 'NoSuchOperator', inputs: ['x'], outputs: ['y'] }],
  });

/** Bytes that are no ONNX file at all. */
export const corruptModel = (): Uint8Array => Buffer.from('these bytes are no model');

export { longs };
