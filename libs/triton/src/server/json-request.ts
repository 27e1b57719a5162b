import { AppError } from '@perch/contracts';
import {
  binaryPartsOf,
  bytesOfJson,
  elementCount,
  type InferRequest,
  type NamedTensor,
  type Parameters,
  type RequestedOutput,
} from '../wire/index.ts';
import { requestTag, ServingFault } from './serving-fault.ts';

type Json = Record<string, unknown>;

/** An infer request over HTTP with the outputs that are to come back binary. */
export interface HttpInfer {
  request: InferRequest;
  isBinary: (output: string) => boolean;
}

const unparsed = (member: string, words: string): ServingFault =>
  new ServingFault('internal', `Unable to parse '${member}': ${words}`);
const noMember = (member: string) => unparsed(member, `attempt to access non-existing object member '${member}'`);

function textOf(json: Json, member: string): string {
  const value = json[member];
  if (value === undefined) throw noMember(member);
  if (typeof value !== 'string') throw unparsed(member, 'attempt to access JSON non-string as string');
  return value;
}

function listOf(json: Json, member: string): Json[] {
  const value = json[member];
  if (value === undefined) throw noMember(member);
  if (!Array.isArray(value)) throw unparsed(member, 'attempt to access JSON non-array as array');
  return value;
}

function shapeOf(tensor: Json): number[] {
  const shape = listOf(tensor, 'shape') as unknown as number[];
  if (shape.some((size) => !Number.isSafeInteger(size) || size < 0))
    throw unparsed('shape', 'attempt to access JSON non-unsigned-integer as unsigned-integer');
  return shape;
}

function parametersOf(json: Json): Parameters | undefined {
  const value = json['parameters'];
  if (value === undefined) return undefined;
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw unparsed('parameters', 'attempt to access JSON non-object as object');
  for (const [key, parameter] of Object.entries(value))
    if (!['string', 'number', 'boolean'].includes(typeof parameter))
      throw new ServingFault(
        'invalid_argument',
        `parameter '${key}' has invalid type; wanted a string, a number or a boolean`,
      );
  return value as Parameters;
}

function refuseReserved(parameters: Parameters | undefined): void {
  if (parameters && Object.keys(parameters).some((key) => key.startsWith('triton_')))
    throw new ServingFault(
      'invalid_argument',
      "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    );
}

export function refuseSharedMemory(parameters: Parameters | undefined, name: string): void {
  if (parameters?.['shared_memory_region'] !== undefined)
    throw new ServingFault('unsupported', `'${name}' asks for shared memory, which this server does not offer`);
}

function dataBytes(tensor: Json, name: string, datatype: string, shape: number[]): Uint8Array {
  if (datatype === 'FP16' || datatype === 'BF16')
    throw new ServingFault(
      'invalid_argument',
      `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${name}`,
    );
  try {
    return bytesOfJson(datatype, shape, tensor['data'], name);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const mismatch = /wants \d+ elements, got/.test(error.message);
    throw unparsed(
      'data',
      mismatch
        ? "Shape does not match true shape of 'data' field"
        : error.message.replace(/^Unable to parse 'data' of /, 'input '),
    );
  }
}

const datatypes = new Set(
  'BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 FP32 FP64 BYTES BF16'.split(' '),
);

function inputsOf(json: Json, binary: Uint8Array, model: string): NamedTensor[] {
  const entries = listOf(json, 'inputs').map((tensor) => {
    const name = textOf(tensor, 'name');
    const datatype = textOf(tensor, 'datatype');
    if (!datatypes.has(datatype)) throw new ServingFault('invalid_argument', `invalid datatype for input ${name}`);
    const parameters = parametersOf(tensor);
    refuseSharedMemory(parameters, name);
    return { name, datatype, shape: shapeOf(tensor), parameters, tensor };
  });
  const parts = partsOf(entries, binary, model);
  return entries.map(({ name, datatype, shape, parameters, tensor }, index) => {
    const part = parts[index];
    const fields = [part, tensor['data']].filter((field) => field !== undefined).length;
    if (fields !== 1) {
      const set = fields === 0 ? 'no field is' : 'more than one field are';
      throw new ServingFault(
        'invalid_argument',
        `Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But ${set} set`,
      );
    }
    return { name, datatype, shape, parameters, bytes: part ?? dataBytes(tensor, name, datatype, shape) };
  });
}

function partsOf(entries: { name: string; parameters?: Parameters }[], binary: Uint8Array, model: string) {
  const wanted = entries.reduce((sum, { parameters }) => sum + Number(parameters?.['binary_data_size'] ?? 0), 0);
  if (wanted < binary.length)
    throw new ServingFault('invalid_argument', `unexpected additional input data for model '${model}'`);
  if (wanted > binary.length) {
    const last = entries.findLast(({ parameters }) => parameters?.['binary_data_size'] !== undefined);
    throw new ServingFault(
      'invalid_argument',
      `unexpected size for input '${last?.name}', expecting ${wanted - binary.length} additional bytes for model '${model}'`,
    );
  }
  return binaryPartsOf(entries, binary);
}

function outputsOf(json: Json): RequestedOutput[] | undefined {
  if (json['outputs'] === undefined) return undefined;
  return listOf(json, 'outputs').map((output) => {
    const name = textOf(output, 'name');
    const parameters = parametersOf(output);
    refuseSharedMemory(parameters, name);
    if (parameters?.['classification'] !== undefined)
      throw new ServingFault(
        'unsupported',
        `output '${name}' asks for classification, which this server does not offer`,
      );
    return { name, parameters };
  });
}

function parse(head: Buffer): Json {
  try {
    const json = JSON.parse(head.toString()) as Json | null;
    if (json !== null && typeof json === 'object') return json;
  } catch (error) {
    throw new ServingFault('internal', `failed to parse the request JSON buffer: ${(error as Error).message}`);
  }
  throw noMember('inputs');
}

/** Reads the JSON form of an infer request and the binary parts behind it. */
export function readJsonInfer(model: string, version: string | undefined, head: Buffer, binary: Uint8Array): HttpInfer {
  const json = parse(head);
  const parameters = parametersOf(json);
  refuseReserved(parameters);
  const outputs = outputsOf(json);
  const { binary_data_output: all, ...rest } = parameters ?? {};
  const binaryOutputs = new Map(outputs?.map(({ name, parameters: own }) => [name, own?.['binary_data']]));
  return {
    request: {
      modelName: model,
      modelVersion: version,
      ...(json['id'] === undefined ? {} : { id: textOf(json, 'id') }),
      ...(parameters === undefined ? {} : { parameters: rest }),
      inputs: inputsOf(json, binary, model),
      outputs,
    },
    isBinary: (name) => (binaryOutputs.get(name) ?? all) === true,
  };
}

/** Reads a raw request: the body is the one input's bytes, its shape deduced from what the model declares. */
export function readRawInfer(
  model: string,
  version: string | undefined,
  body: Buffer,
  inputs: readonly { name: string; datatype: string; shape: readonly number[] }[],
  batches: boolean,
  elementSize: number,
): HttpInfer {
  const fault = (words: string) => new ServingFault('invalid_argument', requestTag(undefined) + words);
  const [input] = inputs;
  if (inputs.length !== 1 || !input)
    throw fault(
      `Raw request must only have 1 input (found 1) to be deduced but got ${inputs.length} inputs in '${model}' model configuration`,
    );
  const dims = batches ? input.shape.slice(1) : input.shape;
  let bytes: Uint8Array = body;
  let inner: number[];
  if (input.datatype === 'BYTES') {
    if (dims.length !== 1 || Math.abs(dims[0]!) !== 1)
      throw fault(`For BYTE datatype raw input '${input.name}', the model must have input shape [1]`);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(body.length);
    bytes = Buffer.concat([length, body]);
    inner = [1];
  } else {
    const free = dims.filter((size) => size === -1).length;
    if (free > 1)
      throw fault(
        `The shape of the raw input '${input.name}' can not be deduced because there are more than one variable-sized dimension`,
      );
    const known = elementCount(dims.filter((size) => size !== -1)) * elementSize;
    if (free === 0 && known !== body.length)
      throw fault(
        `input byte size mismatch for input 'raw_input' for model '${model}'. Expected ${known}, got ${body.length}`,
      );
    if (body.length % known !== 0)
      throw fault(
        `The shape of the raw input '${input.name}' can not be deduced: ${body.length} bytes are no multiple of ${known}`,
      );
    inner = dims.map((size) => (size === -1 ? body.length / known : size));
  }
  const tensor = { name: input.name, datatype: input.datatype, shape: batches ? [1, ...inner] : inner, bytes };
  return { request: { modelName: model, modelVersion: version, inputs: [tensor] }, isBinary: () => true };
}
