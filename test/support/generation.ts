/** A decoder model whose every continuation is known: what comes next depends on the last byte alone. */
import type { Tensors } from '@perch/contracts';
import { asInt32, asInt64, float16, float32 } from '@perch/processing';
import { floats, onnxModel } from './onnx.ts';

const endToken = '<|end|>';
export const endId = 256;
/** 256 bytes, two special tokens, and rows that no token of the tokenizer has. */
export const modelVocabulary = 264;

/** GPT-2's characters for the 256 bytes, in the order of the bytes. */
const byteCharacters = (() => {
  const shown = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(shown(byte) ? byte : next++));
})();

/** A tokenizer.json of which each byte is one token; `<|end|>` and `<|user|>` are special. */
export const byteTokenizer = (): string =>
  JSON.stringify({
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: [endToken, '<|user|>'].map((content, index) => ({
      id: endId + index, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true,
    })), // biome-ignore format: one row reads better
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: '', end_of_word_suffix: '',
      fuse_unk: false, byte_fallback: false,
      vocab: Object.fromEntries([...byteCharacters, endToken, '<|user|>'].map((token, id) => [token, id])),
      merges: [],
    }, // biome-ignore format: one row reads better
  });

/** What follows `#`, and how likely; each of them is followed by `#`. */
export const afterHash = { 1: 0.5, 2: 0.25, 3: 0.15, 4: 0.1 } as const;
const byte = (text: string) => text.charCodeAt(0);
const chainOf = (bytes: readonly number[]): [number, number][] => bytes.slice(1).map((to, i) => [bytes[i]!, to]);

/** `a` to `z`, a space, and again; `!` brings 😀, then `?`, which ends the text. */
const next = new Map<number, number>([
  ...chainOf([...Buffer.from('abcdefghijklmnopqrstuvwxyz a')]),
  ...chainOf([byte('!'), ...Buffer.from('😀'), byte('?'), endId]),
  ...Object.keys(afterHash).map((digit): [number, number] => [byte(digit), byte('#')]),
  [byte(':'), byte('a')],
]);

const unlikely = -12;
/** Row by row: the logits of what follows each token. Known successors have 0, else `a`; everything else -12. */
export const bigramTable: Float32Array = (() => {
  const table = new Float32Array(modelVocabulary * modelVocabulary).fill(unlikely);
  for (let from = 0; from < modelVocabulary; from++)
    if (from !== byte('#')) table[from * modelVocabulary + (next.get(from) ?? byte('a'))] = 0;
  for (const [digit, chance] of Object.entries(afterHash))
    table[byte('#') * modelVocabulary + byte(digit)] = Math.log(chance);
  // more likely than all else, and no token of the tokenizer
  table[byte('~') * modelVocabulary + endId + 4] = 5;
  return table;
})();

/** The same as an ONNX model: logits `[B, S, V]`. */
export const bigramModel = (ids: 'INT64' | 'INT32' = 'INT64'): Uint8Array =>
  onnxModel({
    inputs: [{ name: 'input_ids', type: ids, shape: ['batch', 'tokens'] }],
    outputs: [{ name: 'logits', type: 'FP32', shape: ['batch', 'tokens', modelVocabulary] }],
    nodes: [{ op: 'Gather', inputs: ['table', 'input_ids'], outputs: ['logits'] }],
    constants: [
      {
        name: 'table',
        type: 'FP32',
        dims: [modelVocabulary, modelVocabulary],
        bytes: new Uint8Array(bigramTable.buffer),
      },
    ],
  });

export interface BigramShape {
  logits: 'FP32' | 'FP16';
  /** All positions, as `[B, S, V]`, or the last one alone, as `[B, V]`. */
  steps: 'all' | 'last';
}

/** What the model would answer, without a server. */
export function bigramAnswer(
  inputs: Tensors,
  { logits, steps }: BigramShape = { logits: 'FP32', steps: 'all' },
): Tensors {
  const tensor = inputs['input_ids']!;
  const ids = tensor.datatype === 'INT64' ? Array.from(asInt64(tensor), Number) : [...asInt32(tensor)];
  const mask = inputs['attention_mask'];
  const real = mask
    ? [...(mask.datatype === 'INT64' ? asInt64(mask) : asInt32(mask))].filter(Boolean).length
    : ids.length;
  const wanted = steps === 'all' ? ids : [ids[real - 1]!];
  const values = new Float32Array(wanted.length * modelVocabulary);
  wanted.forEach((id, row) => {
    values.set(bigramTable.subarray(id * modelVocabulary, (id + 1) * modelVocabulary), row * modelVocabulary);
  });
  const shape = [...tensor.shape.slice(0, -1), ...(steps === 'all' ? [wanted.length] : []), modelVocabulary];
  return { logits: (logits === 'FP16' ? float16 : float32)(values, shape) };
}

/** An encoder: each byte's vector is `[byte, 1, 0]`, so that the mean of a text's vectors is known. */
export const byteEncoder = (): Uint8Array =>
  onnxModel({
    inputs: [{ name: 'input_ids', type: 'INT64', shape: ['batch', 'tokens'] }],
    outputs: [{ name: 'last_hidden_state', type: 'FP32', shape: ['batch', 'tokens', 3] }],
    nodes: [{ op: 'Gather', inputs: ['table', 'input_ids'], outputs: ['last_hidden_state'] }],
    constants: [
      {
        name: 'table',
        type: 'FP32',
        dims: [modelVocabulary, 3],
        bytes: floats(...Array.from({ length: modelVocabulary }, (_, id) => [id, 1, 0]).flat()),
      },
    ],
  });
