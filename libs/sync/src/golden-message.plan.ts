import {
  fromHalfBytes,
  type GoldenRequest,
  goldenElements,
  isHalfType,
  type TensorSpec,
  toHalfBytes,
} from '@perch/contracts';
import { binaryPartsOf, type ForwardReply, type ForwardRequest, headerLengthName } from '@perch/triton/inference';
import type { AnsweredTensor } from './golden.decide.ts';

type Entry = { name: string; parameters?: Record<string, string | number | boolean> };

const withParameter = (entry: Entry, name: string, value: number | boolean): Entry => ({
  ...entry,
  parameters: { ...entry.parameters, [name]: value },
});

/** What is none is left to the model server's own words. */
const entriesOf = (outputs: unknown): Entry[] | undefined =>
  Array.isArray(outputs) && outputs.every((one) => typeof one?.name === 'string') ? outputs : undefined;

/**
 * A golden request as the model server takes it. FP16 and BF16 have no JSON form there: such inputs follow the JSON in
 * binary, and such outputs are asked for in binary. Without them it is sent as it stands. `declared`: the model's outputs.
 */
export function goldenQuestion(
  { request, outputs: wanted }: GoldenRequest,
  declared: readonly TensorSpec[],
): Pick<ForwardRequest, 'headers' | 'body'> {
  const halfOutputs = new Set(declared.filter(({ datatype }) => isHalfType(datatype)).map(({ name }) => name));
  const binary: Uint8Array[] = [];
  const inputs = request.inputs.map(({ data, ...input }) => {
    if (!isHalfType(input.datatype)) return { ...input, data };
    const bytes = toHalfBytes(input.datatype, goldenElements(data) as number[]);
    binary.push(bytes);
    return withParameter(input, 'binary_data_size', bytes.length);
  });
  // left out, the model would answer with all of its outputs, in JSON
  const named =
    request['outputs'] === undefined ? wanted.map(({ name }): Entry => ({ name })) : entriesOf(request['outputs']);
  const outputs = named?.map((one) => (halfOutputs.has(one.name) ? withParameter(one, 'binary_data', true) : one));
  const isAsked = halfOutputs.size > 0 && outputs !== undefined;
  const json = Buffer.from(JSON.stringify({ ...request, inputs, ...(isAsked ? { outputs } : {}) }));
  if (binary.length === 0) return { headers: { 'content-type': 'application/json' }, body: [json] };
  const headers = { 'content-type': 'application/octet-stream', [headerLengthName]: String(json.length) };
  return { headers, body: [json, ...binary] };
}

type Answered = Omit<AnsweredTensor, 'data'> & Entry & { data?: readonly unknown[] };

/** The outputs of a reply; undefined: it is none that can be read. */
export function goldenAnswer({
  body,
  headerLength,
}: Pick<ForwardReply, 'body' | 'headerLength'>): AnsweredTensor[] | undefined {
  try {
    const { outputs } = JSON.parse(body.toString('utf8', 0, headerLength)) as { outputs: Answered[] };
    const parts = binaryPartsOf(outputs, body.subarray(headerLength ?? body.length));
    return outputs.map((output, at) => {
      const bytes = parts[at];
      if (!bytes || !isHalfType(output.datatype)) return { ...output, data: output.data ?? [] };
      return { ...output, data: fromHalfBytes(output.datatype, bytes) };
    });
  } catch {
    return undefined;
  }
}
