import type { HttpExchange } from '../http1/index.ts';
import type { Asked, SeenOutput } from './contract.decide.ts';

interface JsonOutput {
  name: string;
  datatype: string;
  shape: number[];
  parameters?: { binary_data_size?: number; shared_memory_region?: string };
  /** What stands in its place: the how-manieth list of data that was cut out. */
  data?: unknown;
}

const opening = Buffer.from('"data":[');
const [comma, quote, bracket, letterN, letterI, lowerN] = [',', '"', '[', 'N', 'I', 'n'].map((c) => c.charCodeAt(0));

interface CutList {
  count: number;
  broken: boolean;
}

/**
 * Looks at a flat list of bare values from `from` to its closing bracket at `to`; undefined: not one of those. NaN and
 * infinities are written bare by model servers; −∞ passes, as in binary form.
 */
function lookAt(json: Buffer, from: number, to: number): CutList | undefined {
  let commas = 0;
  let broken = false;
  for (let at = from; at < to; at += 1) {
    const byte = json[at]!;
    if (byte > 44 && byte < 58) continue; // a digit, a sign, a point: nearly all
    if (byte === comma) commas += 1;
    else if (byte === quote || byte === bracket) return undefined;
    else if (byte === letterN || (byte === letterI && json[at - 1] !== 45)) broken = true;
    else if (byte === lowerN && json[at + 1] === 117) broken = true; // null
  }
  return { count: to === from ? 0 : commas + 1, broken };
}

/** The JSON with its lists of data cut out and looked at, byte by byte: parsing them would cost three times as much. */
function cutData(json: Buffer): { text: string; lists: CutList[] } | undefined {
  const lists: CutList[] = [];
  let text = '';
  let done = 0;
  for (;;) {
    const found = json.indexOf(opening, done);
    if (found < 0) return { text: text + json.toString('utf8', done), lists };
    const from = found + opening.length;
    const to = json.indexOf(93, from);
    const list = to < 0 ? undefined : lookAt(json, from, to);
    if (!list) return undefined;
    text += `${json.toString('utf8', done, found)}"data":${lists.length}`;
    lists.push(list);
    done = to + 1;
  }
}

/** Replies of one model differ in their values alone: what stands around them is parsed once. */
const known = new Map<string, readonly JsonOutput[]>();
const mostKnown = 256;
const longestKnown = 2_048;

function readOutputs(text: string): readonly JsonOutput[] {
  let outputs = known.get(text);
  if (!outputs) {
    outputs = (JSON.parse(text) as { outputs?: JsonOutput[] }).outputs ?? [];
    if (known.size >= mostKnown) known.clear();
    if (text.length <= longestKnown) known.set(text, outputs);
  }
  return outputs;
}

function countNested(data: unknown): CutList {
  if (!Array.isArray(data)) return { count: 1, broken: data === null };
  let count = 0;
  let broken = false;
  for (const element of data) {
    const inner = countNested(element);
    count += inner.count;
    broken ||= inner.broken;
  }
  return { count, broken };
}

function parseJson(json: Buffer): {
  outputs: readonly JsonOutput[];
  listOf: (output: JsonOutput) => CutList | undefined;
} {
  const cut = cutData(json);
  return {
    outputs: readOutputs(cut ? cut.text : json.toString()),
    listOf: ({ data }) => {
      if (data === undefined) return undefined;
      return cut ? cut.lists[data as number] : countNested(data);
    },
  };
}

/**
 * The outputs of an infer reply of the protocol, in JSON, binary or both: types, shapes and the bytes as they lie.
 * Undefined: the reply is not what the protocol says.
 */
export function seeOutputs(body: Buffer, headerLength: number | undefined): SeenOutput[] | undefined {
  try {
    const { outputs, listOf } = parseJson(headerLength === undefined ? body : body.subarray(0, headerLength));
    let at = headerLength ?? body.length;
    const seen = outputs.map((output): SeenOutput => {
      const { name, datatype, shape, parameters } = output;
      if (typeof name !== 'string' || typeof datatype !== 'string') throw new Error('a tensor without name or type');
      const size = parameters?.binary_data_size;
      if (size !== undefined) {
        if (!Number.isSafeInteger(size) || size < 0) throw new Error('a size that is no count of bytes');
        at += size;
        if (at > body.length) throw new Error('a tensor ends beyond the reply');
        return { name, datatype, shape, bytes: body.subarray(at - size, at) };
      }
      if (parameters?.shared_memory_region !== undefined) return { name, datatype, shape };
      return { name, datatype, shape, values: listOf(output) ?? { count: 0, broken: false } };
    });
    return at === body.length ? seen : undefined;
  } catch {
    return undefined;
  }
}

/** What a request of the protocol asked for: read from its JSON part by the words alone, and leniently where they cannot be read. */
export function askedBy({ head, body }: Pick<HttpExchange, 'head' | 'body'>): Asked {
  const mentions = (word: string): boolean => {
    if (head.headers['content-encoding'] !== undefined) return true;
    const whole = body.length === 1 ? body[0]! : Buffer.concat(body);
    const length = Number(head.headers['inference-header-content-length'] ?? whole.length);
    return whole.subarray(0, length).includes(word);
  };
  return { some: () => mentions('"outputs"'), classes: () => mentions('"classification"') };
}
