import { AppError } from '@perch/contracts';
import protobuf from 'protobufjs';
import type { InferRequest, InferResponse, NamedTensor, Parameters, RequestedOutput } from './infer.ts';
import { bytesOfContents, type Contents, readContents } from './typed-contents.ts';
import { readBigInt, readInt } from './varint.ts';

/**
 * `ModelInferRequest` and `ModelInferResponse` by hand: tensors go to and from `raw_*_contents` without the copies and
 * 64-bit objects of the reflected codec. Field numbers are those of service.schema.ts (a spec compares both codecs).
 */
const tagOf = (field: number): number => (field << 3) | 2;

function writeParameters(writer: protobuf.Writer, field: number, parameters: Parameters | undefined): void {
  if (!parameters) return;
  for (const [key, value] of Object.entries(parameters)) {
    writer.uint32(tagOf(field)).fork().uint32(tagOf(1)).string(key).uint32(tagOf(2)).fork();
    if (typeof value === 'boolean') writer.uint32(8).bool(value);
    else if (typeof value === 'string') writer.uint32(tagOf(3)).string(value);
    else if (Number.isSafeInteger(value)) writer.uint32(16).int64(value);
    else writer.uint32((4 << 3) | 1).double(value);
    writer.ldelim().ldelim();
  }
}

function writeTensor(writer: protobuf.Writer, tensor: NamedTensor): void {
  writer.uint32(tagOf(5)).fork().uint32(tagOf(1)).string(tensor.name).uint32(tagOf(2)).string(tensor.datatype);
  if (tensor.shape.length > 0) {
    writer.uint32(tagOf(3)).fork();
    for (const size of tensor.shape) writer.int64(size);
    writer.ldelim();
  }
  writeParameters(writer, 4, tensor.parameters);
  writer.ldelim();
}

function writeOutput(writer: protobuf.Writer, output: RequestedOutput): void {
  writer.uint32(tagOf(6)).fork().uint32(tagOf(1)).string(output.name);
  writeParameters(writer, 2, output.parameters);
  writer.ldelim();
}

function writeHead(writer: protobuf.Writer, name: string, version: string | undefined, id: string | undefined): void {
  writer.uint32(tagOf(1)).string(name);
  if (version) writer.uint32(tagOf(2)).string(version);
  if (id) writer.uint32(tagOf(3)).string(id);
}

export function encodeInferRequest(request: InferRequest): Buffer {
  const writer = protobuf.Writer.create();
  writeHead(writer, request.modelName, request.modelVersion, request.id);
  writeParameters(writer, 4, request.parameters);
  for (const tensor of request.inputs) writeTensor(writer, tensor);
  for (const output of request.outputs ?? []) writeOutput(writer, output);
  for (const tensor of request.inputs) writer.uint32(tagOf(7)).bytes(tensor.bytes);
  return writer.finish() as Buffer;
}

export function encodeInferResponse(response: InferResponse): Buffer {
  const writer = protobuf.Writer.create();
  writeHead(writer, response.modelName, response.modelVersion, response.id);
  writeParameters(writer, 4, response.parameters);
  for (const tensor of response.outputs) writeTensor(writer, tensor);
  for (const tensor of response.outputs) writer.uint32(tagOf(6)).bytes(tensor.bytes);
  return writer.finish() as Buffer;
}

function readParameter(reader: protobuf.Reader, end: number, into: Parameters): void {
  let key = '';
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === tagOf(1)) key = reader.string();
    else if (tag === tagOf(2)) {
      const valueEnd = reader.uint32() + reader.pos;
      while (reader.pos < valueEnd) {
        const field = reader.uint32();
        if (field === 8) into[key] = reader.bool();
        else if (field === 16) into[key] = readInt(reader);
        else if (field === tagOf(3)) into[key] = reader.string();
        else if (field === ((4 << 3) | 1)) into[key] = reader.double();
        else if (field === 40) into[key] = Number(readBigInt(reader, false));
        else reader.skipType(field & 7);
      }
    } else reader.skipType(tag & 7);
  }
}

function readParameters(reader: protobuf.Reader, into: Parameters = {}): Parameters {
  readParameter(reader, reader.uint32() + reader.pos, into);
  return into;
}

function readShape(reader: protobuf.Reader, tag: number, into: number[]): void {
  if (tag === 24) {
    into.push(readInt(reader));
    return;
  }
  const end = reader.uint32() + reader.pos;
  while (reader.pos < end) into.push(readInt(reader));
}

interface ReadTensor extends NamedTensor {
  contents?: Contents;
}

function readTensor(reader: protobuf.Reader): ReadTensor {
  const tensor: ReadTensor = { name: '', datatype: '', shape: [], bytes: noBytes };
  const end = reader.uint32() + reader.pos;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === tagOf(1)) tensor.name = reader.string();
    else if (tag === tagOf(2)) tensor.datatype = reader.string();
    else if (tag === tagOf(3) || tag === 24) readShape(reader, tag, tensor.shape);
    else if (tag === tagOf(4)) tensor.parameters = readParameters(reader, tensor.parameters);
    else if (tag === tagOf(5)) tensor.contents = readContents(reader, tensor.contents);
    else reader.skipType(tag & 7);
  }
  return tensor;
}

function readOutput(reader: protobuf.Reader): RequestedOutput {
  const output: RequestedOutput = { name: '' };
  const end = reader.uint32() + reader.pos;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === tagOf(1)) output.name = reader.string();
    else if (tag === tagOf(2)) output.parameters = readParameters(reader, output.parameters);
    else reader.skipType(tag & 7);
  }
  return output;
}

const noBytes = new Uint8Array(0);
const inSharedMemory = (tensor: ReadTensor): boolean => tensor.parameters?.['shared_memory_region'] !== undefined;

/** Gives every tensor its bytes, from the raw entries or from typed contents; both in one message is a fault. */
function placeContents(tensors: ReadTensor[], raw: Uint8Array[], model: string): NamedTensor[] {
  const wanting = tensors.filter((tensor) => !inSharedMemory(tensor));
  if (raw.length === 0) {
    for (const tensor of wanting)
      if (tensor.contents) tensor.bytes = bytesOfContents(tensor.datatype, tensor.contents, tensor.name);
  } else {
    const typed = wanting.find((tensor) => tensor.contents);
    if (typed)
      throw new AppError(
        'invalid',
        `contents field must not be specified when using raw_input_contents for '${typed.name}' for model '${model}'`,
      );
    if (raw.length !== wanting.length)
      throw new AppError(
        'invalid',
        `expected number of raw contents ${wanting.length} for model '${model}', got ${raw.length}`,
      );
    for (const [index, tensor] of wanting.entries()) tensor.bytes = raw[index]!;
  }
  for (const tensor of tensors) delete tensor.contents;
  return tensors;
}

/** Throws `invalid` when raw and typed contents are mixed or do not match the inputs in number. */
export function decodeInferRequest(message: Uint8Array): InferRequest {
  const reader = protobuf.Reader.create(message);
  const request: InferRequest = { modelName: '', inputs: [] };
  const inputs: ReadTensor[] = [];
  const outputs: RequestedOutput[] = [];
  const raw: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === tagOf(1)) request.modelName = reader.string();
    else if (tag === tagOf(2)) request.modelVersion = reader.string();
    else if (tag === tagOf(3)) request.id = reader.string();
    else if (tag === tagOf(4)) request.parameters = readParameters(reader, request.parameters);
    else if (tag === tagOf(5)) inputs.push(readTensor(reader));
    else if (tag === tagOf(6)) outputs.push(readOutput(reader));
    else if (tag === tagOf(7)) raw.push(reader.bytes());
    else reader.skipType(tag & 7);
  }
  request.inputs = placeContents(inputs, raw, request.modelName);
  if (outputs.length > 0) request.outputs = outputs;
  return request;
}

/** Throws `invalid` when the raw entries do not match the outputs in number. */
export function decodeInferResponse(message: Uint8Array): InferResponse {
  const reader = protobuf.Reader.create(message);
  const response: InferResponse = { modelName: '', modelVersion: '', outputs: [] };
  const outputs: ReadTensor[] = [];
  const raw: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === tagOf(1)) response.modelName = reader.string();
    else if (tag === tagOf(2)) response.modelVersion = reader.string();
    else if (tag === tagOf(3)) response.id = reader.string();
    else if (tag === tagOf(4)) response.parameters = readParameters(reader, response.parameters);
    else if (tag === tagOf(5)) outputs.push(readTensor(reader));
    else if (tag === tagOf(6)) raw.push(reader.bytes());
    else reader.skipType(tag & 7);
  }
  response.outputs = placeContents(outputs, raw, response.modelName);
  return response;
}
