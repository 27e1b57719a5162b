import type { DataType } from '@perch/contracts';
import type { NamedTensor } from '@perch/triton/server';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { bytesOfTexts, textsOf } from './texts.ts';

/** A tensor of the graph; -1 where a size may differ. */
export interface GraphTensor {
  name: string;
  datatype: DataType;
  shape: number[];
}

/** One loaded model that computes one batch at a time. */
export interface Session {
  inputs: GraphTensor[];
  outputs: GraphTensor[];
  /** Resolves to the named outputs, in that order; rejects with onnxruntime's words. */
  run(feeds: NamedTensor[], outputs: readonly string[]): Promise<NamedTensor[]>;
  close(): Promise<void>;
}

export interface SessionOptions {
  /** Threads that compute one operator together. */
  threads: number;
}
export type OpenSession = (file: string, options: SessionOptions) => Promise<Session>;

const protocolType: Record<string, DataType> = {
  bool: 'BOOL', uint8: 'UINT8', uint16: 'UINT16', uint32: 'UINT32', uint64: 'UINT64', int8: 'INT8', int16: 'INT16',
  int32: 'INT32', int64: 'INT64', float16: 'FP16', float32: 'FP32', float64: 'FP64', string: 'BYTES',
}; // biome-ignore format: one row reads better
const ortType = Object.fromEntries(Object.entries(protocolType).map(([ort, type]) => [type, ort]));

type ArrayType = { new (buffer: ArrayBufferLike, at: number, length: number): object; BYTES_PER_ELEMENT: number };
// Newer Node has half floats of its own, and onnxruntime then wants them.
const halfFloats = ((globalThis as Record<string, unknown>)['Float16Array'] ?? Uint16Array) as ArrayType;
const arrayType: Record<string, ArrayType> = {
  BOOL: Uint8Array, UINT8: Uint8Array, UINT16: Uint16Array, UINT32: Uint32Array, UINT64: BigUint64Array, INT8: Int8Array,
  INT16: Int16Array, INT32: Int32Array, INT64: BigInt64Array, FP16: halfFloats, FP32: Float32Array, FP64: Float64Array,
}; // biome-ignore format: one row reads better

function ortTensor({ name, datatype, shape, bytes }: NamedTensor): Tensor {
  const type = ortType[datatype];
  if (!type) throw new Error(`tensor '${name}' of type ${datatype} cannot be computed here`);
  if (datatype === 'BYTES') return new Tensor('string', textsOf(bytes, name), shape);
  const construct = arrayType[datatype]!;
  const { BYTES_PER_ELEMENT: size } = construct;
  const aligned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  const data = new construct(aligned.buffer, aligned.byteOffset, bytes.length / size);
  return new Tensor(type as 'float32', data as Float32Array, shape);
}

function namedTensor(name: string, { type, dims, data }: Tensor): NamedTensor {
  const shape = [...dims];
  if (type === 'string') return { name, datatype: 'BYTES', shape, bytes: bytesOfTexts(data as string[]) };
  const view = data as Uint8Array;
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  return { name, datatype: protocolType[type]!, shape, bytes };
}

function graphTensors(values: readonly InferenceSession.ValueMetadata[]): GraphTensor[] {
  return values.map((value) => {
    const datatype = value.isTensor ? protocolType[value.type] : undefined;
    if (!value.isTensor || !datatype)
      throw new Error(
        `'${value.name}' is ${value.isTensor ? `a tensor of ${value.type}` : 'no tensor'}, which cannot be served`,
      );
    const shape = value.shape.map((size) => (typeof size === 'number' && size >= 0 ? size : -1));
    return { name: value.name, datatype, shape };
  });
}

/** Opens a session in this thread. onnxruntime-node computes synchronously: see session.client.ts for a thread of its own. */
export async function openOnnxSession(file: string, { threads }: SessionOptions): Promise<Session> {
  const session = await InferenceSession.create(file, {
    executionProviders: ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Waiting threads that spin would take the cores from the server and from the other models.
    extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
    logSeverityLevel: 3,
  });
  return {
    inputs: graphTensors(session.inputMetadata),
    outputs: graphTensors(session.outputMetadata),
    async run(feeds, outputs) {
      const results = await session.run(Object.fromEntries(feeds.map((feed) => [feed.name, ortTensor(feed)])), [
        ...outputs,
      ]);
      return outputs.map((name) => namedTensor(name, results[name]!));
    },
    close: () => session.release(),
  };
}
