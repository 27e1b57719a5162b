import {
  AppError,
  type DataType,
  type Signature,
  type Tensor,
  type TensorSpec,
  type Tensors,
} from '@perch/contracts/plain';
import type { Padding, TokenBatch } from '../contract.ts';
import { int32, int64 } from '../tensor.ts';

/** What the model's signature and the options leave to do with the tokens of every request. */
export interface TextInputPlan {
  ids: TensorSpec;
  /** Absent where the model's signature names none. */
  mask?: TensorSpec;
  kinds?: TensorSpec;
  /** The model takes exactly so many tokens; 0 = any. */
  fixedTokens: number;
  /** Texts of one request: from, to. */
  texts: [number, number];
  maxTokens: number;
  padding: Padding;
  /** False: one text without a batch dimension. */
  batched: boolean;
}

interface TextInputWish {
  signature: Signature;
  maxBatchSize: number;
  options: { maxTokens: number; padding: Padding };
  builtin: string;
}

/** Checks that the model takes tokens and nothing else. Throws `invalid` naming the tensor at fault. */
export function planTextInput({ signature, maxBatchSize, options, builtin }: TextInputWish): TextInputPlan {
  const refuse = (message: string): never => {
    throw new AppError('invalid', `processing ${builtin}: ${message}`);
  };
  const wanted = `${builtin} fills input_ids, attention_mask and token_type_ids`;
  const find = (name: string) => signature.inputs.find((input) => input.name === name);
  const ids = find('input_ids') ?? refuse(`the model has no input "input_ids"; ${wanted}`);
  const mask = find('attention_mask');
  const kinds = find('token_type_ids');
  for (const input of signature.inputs) {
    if (input === ids || input === mask || input === kinds) checkInput(input, ids, refuse);
    else if (!input.optional) refuse(`the model wants input "${input.name}"; ${wanted}`);
  }
  const batched = ids.shape.length === 2;
  const fixedTokens = Math.max(0, ids.shape.at(-1)!);
  const { padding } = options;
  if (fixedTokens > 0 && typeof padding === 'object' && 'to' in padding && padding.to !== fixedTokens)
    refuse(`options.padding.to is ${padding.to}, but the model takes exactly ${fixedTokens} tokens`);
  const fixedTexts = batched ? ids.shape[0]! : 1;
  return {
    ids,
    ...(mask && { mask }),
    ...(kinds && { kinds }),
    fixedTokens,
    texts: fixedTexts > 0 ? [fixedTexts, fixedTexts] : [1, maxBatchSize || 1024],
    maxTokens: fixedTokens > 0 ? Math.min(fixedTokens, options.maxTokens) : options.maxTokens,
    padding: fixedTokens > 0 ? { to: fixedTokens } : padding,
    batched,
  };
}

function checkInput({ name, datatype, shape }: TensorSpec, ids: TensorSpec, refuse: (message: string) => never): void {
  if (datatype !== 'INT32' && datatype !== 'INT64') refuse(`input "${name}" is ${datatype}, wanted INT32 or INT64`);
  if (shape.length !== 1 && shape.length !== 2) refuse(`input "${name}" has ${shape.length} dimensions, wanted 2`);
  if (shape.length !== ids.shape.length) refuse(`input "${name}" has another number of dimensions than input_ids`);
}

/** Small whole numbers as INT64 without a bigint each: the low half is the number, the high half zero. */
function wide(values: Int32Array): BigInt64Array {
  const halves = new Int32Array(values.length * 2);
  for (let i = 0; i < values.length; i++) halves[2 * i] = values[i]!;
  return new BigInt64Array(halves.buffer);
}

const cast = (datatype: DataType, values: Int32Array, shape: readonly number[]): Tensor =>
  datatype === 'INT64' ? int64(wide(values), shape) : int32(values, shape);

/** The tokens as the model's inputs, in its own types. */
export function textTensors({ ids, mask, kinds, batched }: TextInputPlan, batch: TokenBatch): Tensors {
  const shape = batched ? batch.shape : [batch.shape[1]];
  const inputs: Tensors = { [ids.name]: cast(ids.datatype, batch.ids, shape) };
  if (mask) inputs[mask.name] = cast(mask.datatype, batch.mask, shape);
  if (kinds) inputs[kinds.name] = cast(kinds.datatype, batch.types, shape);
  return inputs;
}
