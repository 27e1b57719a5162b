import { AppError, type Signature, type Tensor, type TensorSpec, type Tensors } from '@perch/contracts/plain';
import { int32, int64 } from '../tensor.ts';
import { asFloats } from '../tensor-of.ts';

/** What the model's signature leaves to do for every step. */
export interface DecoderPlan {
  ids: TensorSpec;
  /** Absent where the model's signature names none. */
  mask?: TensorSpec;
  positions?: TensorSpec;
  kinds?: TensorSpec;
  logits: TensorSpec;
  /** The model takes exactly so many tokens; 0 = any. */
  fixedTokens: number;
  /** False: one text without a batch dimension. */
  batched: boolean;
}

const wanted = 'text-generation fills input_ids, attention_mask, position_ids and token_type_ids';

const refuse = (message: string): never => {
  throw new AppError('invalid', `processing text-generation: ${message}`);
};

function checkInput({ name, datatype, shape }: TensorSpec, ids: TensorSpec): void {
  if (datatype !== 'INT32' && datatype !== 'INT64') refuse(`input "${name}" is ${datatype}, wanted INT32 or INT64`);
  if (shape.length !== 1 && shape.length !== 2) refuse(`input "${name}" has ${shape.length} dimensions, wanted 2`);
  if (shape.length !== ids.shape.length) refuse(`input "${name}" has another number of dimensions than input_ids`);
}

function findLogits({ outputs }: Signature, batched: boolean, output: string | undefined): TensorSpec {
  const floats = outputs.filter(({ datatype }) => ['FP32', 'FP16', 'BF16'].includes(datatype));
  const found =
    output !== undefined
      ? outputs.find(({ name }) => name === output)
      : (floats.find(({ name }) => name === 'logits') ?? (floats.length === 1 ? floats[0] : undefined));
  const names = outputs.map(({ name }) => name).join(', ');
  if (!found)
    return refuse(
      output === undefined
        ? `name one of the outputs ${names} in options.output`
        : `the model has no output "${output}"; it has ${names}`,
    );
  if (!floats.includes(found)) refuse(`output "${found.name}" is ${found.datatype}, wanted FP32, FP16 or BF16`);
  const rank = found.shape.length + (batched ? 0 : 1);
  if (rank !== 2 && rank !== 3)
    refuse(`output "${found.name}" has shape [${found.shape.join(', ')}], wanted [B, V] or [B, S, V]`);
  return found;
}

/** Checks that the model takes tokens and gives logits. Throws `invalid` naming the tensor at fault. */
export function planDecoder(signature: Signature, output: string | undefined): DecoderPlan {
  const find = (name: string) => signature.inputs.find((input) => input.name === name);
  const ids = find('input_ids') ?? refuse(`the model has no input "input_ids"; ${wanted}`);
  const mask = find('attention_mask');
  const positions = find('position_ids');
  const kinds = find('token_type_ids');
  for (const input of signature.inputs) {
    if ([ids, mask, positions, kinds].includes(input)) checkInput(input, ids);
    else if (/^past|^cache|use_cache/.test(input.name))
      refuse(`the model wants "${input.name}", a cache of earlier steps: export it without (use_cache off)`);
    else if (!input.optional) refuse(`the model wants input "${input.name}"; ${wanted}`);
  }
  const batched = ids.shape.length === 2;
  if (batched && ids.shape[0]! > 1) refuse(`the model takes batches of exactly ${ids.shape[0]}, wanted 1 or any`);
  return {
    ids,
    ...(mask && { mask }),
    ...(positions && { positions }),
    ...(kinds && { kinds }),
    logits: findLogits(signature, batched, output),
    fixedTokens: Math.max(0, ids.shape.at(-1)!),
    batched,
  };
}

/** One growing list of tokens as the model's inputs. Its arrays are made once a request, and longer views of them each step. */
export class DecoderInputs {
  private readonly plan: DecoderPlan;
  private readonly columns: {
    name: string;
    values: Int32Array | BigInt64Array;
    fill: (at: number, id: number) => number;
  }[];
  private count = 0;

  /** `most`: tokens that will ever be in it. `padId` fills what a model of fixed length has behind them. */
  constructor(plan: DecoderPlan, most: number, padId: number) {
    this.plan = plan;
    const size = plan.fixedTokens || most;
    const column = (spec: TensorSpec | undefined, pad: number, fill: (at: number, id: number) => number) => {
      if (!spec) return [];
      const values =
        spec.datatype === 'INT64' ? new BigInt64Array(size).fill(BigInt(pad)) : new Int32Array(size).fill(pad);
      return [{ name: spec.name, values, fill }];
    };
    this.columns = [
      ...column(plan.ids, padId, (_, id) => id),
      ...column(plan.mask, 0, () => 1),
      ...column(plan.positions, 0, (at) => at),
      ...column(plan.kinds, 0, () => 0),
    ];
  }

  push(id: number): void {
    for (const { values, fill } of this.columns) {
      const value = fill(this.count, id);
      if (values instanceof BigInt64Array) values[this.count] = BigInt(value);
      else values[this.count] = value;
    }
    this.count += 1;
  }

  tensors(): Tensors {
    const size = this.plan.fixedTokens || this.count;
    const shape = this.plan.batched ? [1, size] : [size];
    const inputs: Tensors = {};
    for (const { name, values } of this.columns) {
      const view = values.subarray(0, size);
      inputs[name] = view instanceof BigInt64Array ? int64(view, shape) : int32(view, shape);
    }
    return inputs;
  }

  /**
   * Logits of the next token, in a view of the answer where that is possible. Throws `upstream` when the answer is not
   * what the signature promised.
   */
  lastLogits(outputs: Tensors): Float32Array {
    const { logits, batched, fixedTokens } = this.plan;
    const answer = outputs[logits.name];
    if (!answer) throw new AppError('upstream', `the model server left out output "${logits.name}"`);
    const shape = batched ? answer.shape : [1, ...answer.shape];
    const size = shape.at(-1)!;
    const steps = shape.length === 3 ? shape[1]! : 1;
    const sent = fixedTokens || this.count;
    const isWhole = shape[0] === 1 && (shape.length === 2 || shape.length === 3) && (steps === sent || steps === 1);
    if (!isWhole || size === 0)
      throw new AppError(
        'upstream',
        `output "${logits.name}" has shape [${answer.shape.join(', ')}], wanted [1, V] or [1, ${sent}, V]`,
      );
    return asFloats(rowOf(answer, steps === 1 ? 0 : this.count - 1, size));
  }
}

function rowOf({ datatype, bytes }: Tensor, row: number, size: number): Tensor {
  const rowBytes = size * (datatype === 'FP32' ? 4 : 2);
  return { datatype, shape: [size], bytes: bytes.subarray(row * rowBytes, (row + 1) * rowBytes) };
}
