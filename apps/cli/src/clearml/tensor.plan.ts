import { AppError, type DataType, dataTypes, type EngineTensor } from '@perch/contracts';

/** Words as they may arrive: with stray backslashes, quotes of either kind, and commas left over from lists. */
const clean = (word: string): string => word.replace(/[\\"']/g, '').trim();

/** `a, b,` and `a b` and `"a" "b"` are the same two words. */
export const wordsOf = (values: readonly string[] | undefined): string[] =>
  (values ?? [])
    .flatMap((value) => clean(value).split(','))
    .map((word) => word.trim())
    .filter((word) => word !== '');

/**
 * Dimensions of one or more tensors: `1 28 28` is one, `[1,28,28] [3,224]` are two, and a nested list works too. They
 * are taken as they stand, the batch dimension (if any) included. Throws `invalid` naming the flag.
 */
export function parseDims(values: readonly string[] | undefined, flag: string): number[][] {
  const text = (values ?? []).map(clean).join(' ').trim();
  if (text === '') return [];
  const tensors: number[][] = [];
  let current: number[] | undefined;
  let depth = 0;
  for (const [token] of text.matchAll(/\[|\]|[^\s,[\]]+/g)) {
    if (token === '[') {
      depth += 1;
      current = undefined;
    } else if (token === ']') {
      depth -= 1;
      current = undefined;
      if (depth < 0) throw new AppError('invalid', `${flag}: a "]" without its "[" in ${text}`);
    } else {
      if (!/^-?\d+$/.test(token))
        throw new AppError('invalid', `${flag}: wants dimensions such as 1 28 28 or "[-1,384]", got "${token}"`);
      current ??= tensors[tensors.push([]) - 1] as number[];
      current.push(Number(token));
    }
  }
  if (depth !== 0) throw new AppError('invalid', `${flag}: a "[" without its "]" in ${text}`);
  return tensors;
}

const numpyTypes: Record<string, DataType> = {
  bool: 'BOOL', bool_: 'BOOL', int8: 'INT8', int16: 'INT16', int32: 'INT32', int64: 'INT64', int: 'INT64', long: 'INT64',
  uint8: 'UINT8', uint16: 'UINT16', uint32: 'UINT32', uint64: 'UINT64', float16: 'FP16', half: 'FP16', float32: 'FP32',
  single: 'FP32', float64: 'FP64', double: 'FP64', float: 'FP64', bfloat16: 'BF16', str: 'BYTES', string: 'BYTES',
  object: 'BYTES', bytes: 'BYTES', 'f2': 'FP16', 'f4': 'FP32', 'f8': 'FP64', 'i4': 'INT32', 'i8': 'INT64',
}; // biome-ignore format: one table

/** numpy's names (float32), Triton's (FP32, TYPE_FP32). */
export function parseType(word: string, flag: string): DataType {
  const upper = word.toUpperCase().replace(/^TYPE_/, '');
  const known = upper === 'STRING' ? 'BYTES' : dataTypes.find((type) => type === upper);
  const type =
    known ??
    numpyTypes[
      word
        .toLowerCase()
        .replace(/^(np|numpy)\./, '')
        .replace(/^[<>=|]/, '')
    ];
  if (!type)
    throw new AppError('invalid', `${flag}: there is no type "${word}"; wants float32, int64, uint8, bool, string, …`);
  return type;
}

export interface TensorFlags {
  size?: readonly string[] | undefined;
  type?: readonly string[] | undefined;
  name?: readonly string[] | undefined;
}

/** Tensors of `--input-size --input-type --input-name` (or output); undefined when none of the three is given. */
export function planTensors(flags: TensorFlags, side: 'input' | 'output'): EngineTensor[] | undefined {
  const sizes = parseDims(flags.size, `--${side}-size`);
  const types = wordsOf(flags.type).map((word) => parseType(word, `--${side}-type`));
  const names = wordsOf(flags.name);
  const count = Math.max(sizes.length, types.length, names.length);
  if (count === 0) return undefined;
  for (const [flag, given] of [
    ['size', sizes],
    ['type', types],
    ['name', names],
  ] as const)
    if (given.length !== count)
      throw new AppError(
        'invalid',
        `--${side}-${flag}: ${given.length} given for ${count} ${side}s; size, type and name want one each`,
      );
  return names.map((name, at) => ({ name, type: types[at] as DataType, dims: sizes[at] as number[] }));
}
