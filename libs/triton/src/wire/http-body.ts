import { AppError } from '@perch/contracts';
import type { InferRequest, InferResponse, NamedTensor, Parameters } from './infer.ts';
import { bytesOfJson } from './json-tensor.ts';

/** Bytes of the JSON in front of the binary parts; both directions. */
export const headerLengthName = 'inference-header-content-length';

interface JsonTensor {
  name: string;
  datatype: string;
  shape: number[];
  parameters?: Parameters;
  data?: unknown;
}
interface JsonResponse {
  id?: string;
  model_name: string;
  model_version: string;
  parameters?: Parameters;
  outputs?: JsonTensor[];
}

export interface HttpBody {
  /** The JSON and then each tensor's bytes, in order; send them behind one another. */
  parts: Uint8Array[];
  headerLength: number;
  sizeBytes: number;
}

/** A tensor's entry of the JSON, its bytes following outside. */
const binaryEntry = (tensor: NamedTensor): JsonTensor => ({
  name: tensor.name,
  datatype: tensor.datatype,
  shape: tensor.shape,
  parameters: { ...tensor.parameters, binary_data_size: tensor.bytes.length },
});

export function bodyOf(json: object, tensors: readonly NamedTensor[]): HttpBody {
  const head = Buffer.from(JSON.stringify(json));
  const parts: Uint8Array[] = [head];
  let sizeBytes = head.length;
  for (const { bytes } of tensors) {
    parts.push(bytes);
    sizeBytes += bytes.length;
  }
  return { parts, headerLength: head.length, sizeBytes };
}

/** Body of an infer request with every tensor binary; answers are asked for in binary too. */
export function encodeHttpRequest(request: InferRequest): HttpBody {
  const outputs = request.outputs?.map((output) => ({
    name: output.name,
    parameters: { binary_data: true, ...output.parameters },
  }));
  const parameters = outputs ? request.parameters : { ...request.parameters, binary_data_output: true };
  return bodyOf({ id: request.id, parameters, inputs: request.inputs.map(binaryEntry), outputs }, request.inputs);
}

/** Body of an infer answer with every tensor binary. */
export const encodeHttpResponse = (response: InferResponse): HttpBody =>
  bodyOf(
    {
      id: response.id,
      model_name: response.modelName,
      model_version: response.modelVersion,
      parameters: response.parameters,
      outputs: response.outputs.map(binaryEntry),
    },
    response.outputs,
  );

/** Cuts the binary parts off a body in the order of the tensors; `undefined` where a tensor carries JSON data. */
export function binaryPartsOf(
  tensors: readonly { name: string; parameters?: Parameters }[],
  binary: Uint8Array,
): (Uint8Array | undefined)[] {
  let at = 0;
  const parts = tensors.map(({ name, parameters }) => {
    const size = parameters?.['binary_data_size'];
    if (size === undefined) return undefined;
    if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0)
      throw new AppError('invalid', `binary_data_size of '${name}' is not a count of bytes`);
    if (at + size > binary.length)
      throw new AppError('invalid', `unexpected size ${size} for '${name}': ${binary.length - at} bytes are left`);
    at += size;
    return binary.subarray(at - size, at);
  });
  if (at !== binary.length)
    throw new AppError('invalid', `unexpected additional data: ${binary.length - at} bytes that no tensor claims`);
  return parts;
}

/**
 * Reads an infer answer. `headerLength` is the value of `Inference-Header-Content-Length`; left out: all of it is JSON.
 * The tensors' bytes are views into `body`. Throws `upstream` when the answer is not what the protocol says.
 */
export function decodeHttpResponse(body: Uint8Array, headerLength: number = body.length): InferResponse {
  let json: JsonResponse;
  try {
    json = JSON.parse(Buffer.from(body.buffer, body.byteOffset, headerLength).toString()) as JsonResponse;
  } catch (cause) {
    throw new AppError('upstream', `the model server's answer is not JSON: ${(cause as Error).message}`, { cause });
  }
  return {
    modelName: json.model_name,
    modelVersion: json.model_version,
    ...(json.id === undefined ? {} : { id: json.id }),
    ...(json.parameters === undefined ? {} : { parameters: json.parameters }),
    outputs: outputsOf(json.outputs ?? [], body.subarray(headerLength)),
  };
}

/** What would be the client's fault in a request is the model server's in an answer. */
function outputsOf(entries: readonly JsonTensor[], binary: Uint8Array): NamedTensor[] {
  try {
    const parts = binaryPartsOf(entries, binary);
    return entries.map(({ name, datatype, shape, data }, index) => ({
      name,
      datatype,
      shape,
      bytes: parts[index] ?? bytesOfJson(datatype, shape, data, name),
    }));
  } catch (cause) {
    throw new AppError('upstream', `the model server's answer: ${(cause as Error).message}`, { cause });
  }
}
