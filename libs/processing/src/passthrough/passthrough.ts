import {
  AppError,
  type PassthroughOptions,
  type Signature,
  type Tensor,
  type TensorSpec,
  type Tensors,
} from '@perch/contracts';
import { defineProcessing } from '../contract.ts';
import { toTensor } from '../convert.ts';
import { kindOf } from '../json-body.ts';
import { readJsonBody } from '../json-scan.ts';
import { flatten } from '../nested.ts';
import type { Precision } from '../number-scan.ts';
import { elementCount } from '../tensor.ts';
import { checkNames, type GivenBody, type GivenTensor, readBody } from './body.ts';
import { fitShape } from './fit-shape.ts';
import { writeReply } from './reply.ts';

interface Loaded {
  signature: Signature;
  maxBatchSize: number;
  byName: Map<string, TensorSpec>;
  /** `single` where every input is FP32. */
  precision: Precision;
}

/** The shape the client wrote beside its data, checked against the count; the nesting of the data then does not matter. */
function writtenShape({ name, shape }: GivenTensor, count: number): number[] {
  if (!Array.isArray(shape) || !shape.every((dim) => Number.isSafeInteger(dim) && (dim as number) >= 0))
    throw new AppError('invalid', `input "${name}": shape is ${kindOf(shape)}, wanted a list of whole numbers`);
  const dims = shape as number[];
  if (elementCount(dims) !== count)
    throw new AppError(
      'invalid',
      `input "${name}": shape [${dims.join(', ')}] wants ${elementCount(dims)} values, got ${count}`,
    );
  return dims;
}

function readInput(given: GivenTensor, { byName, maxBatchSize }: Loaded): Tensor {
  const spec = byName.get(given.name)!;
  const thing = `input "${given.name}"`;
  if (given.datatype !== undefined && given.datatype !== spec.datatype)
    throw new AppError('invalid', `${thing}: datatype ${String(given.datatype).slice(0, 16)}, wanted ${spec.datatype}`);
  const flat = flatten(given.data, thing);
  const shape = given.shape === undefined ? flat.shape : writtenShape(given, flat.values.length);
  const fit = fitShape(shape, { dims: spec.shape, batches: maxBatchSize > 0 });
  if ('fault' in fit) throw new AppError('invalid', `${thing}: ${fit.fault}`);
  return toTensor(spec.datatype, flat.values, fit.shape, thing);
}

/** All inputs of a batching model share one batch size, from 1 to the model's maximum. */
function checkBatch(inputs: Tensors, maxBatchSize: number): void {
  if (maxBatchSize === 0) return;
  const sizes = Object.entries(inputs).map(([name, { shape }]) => ({ name, size: shape[0]! }));
  for (const { name, size } of sizes) {
    if (size !== sizes[0]!.size)
      throw new AppError(
        'invalid',
        `input "${name}": batch of ${size}, but input "${sizes[0]!.name}" has ${sizes[0]!.size}`,
      );
    if (size < 1 || size > maxBatchSize)
      throw new AppError('invalid', `input "${name}": batch of ${size}, wanted 1 to ${maxBatchSize}`);
  }
}

/** Tensors in, tensors out, with types and shapes of the model. The reply speaks the form that the request spoke. */
export const passthrough = defineProcessing<Buffer, Loaded, GivenBody['form'], PassthroughOptions>({
  body: 'json-bytes',
  load: ({ signature, maxBatchSize }) => ({
    signature,
    maxBatchSize,
    byName: new Map(signature.inputs.map((input) => [input.name, input])),
    precision: signature.inputs.every(({ datatype }) => datatype === 'FP32') ? 'single' : 'double',
  }),
  preprocess(body, loaded) {
    const { form, given } = readBody(readJsonBody(body, loaded.precision), loaded.signature.inputs);
    checkNames(given, loaded.signature.inputs);
    const inputs: Tensors = {};
    for (const tensor of given) inputs[tensor.name] = readInput(tensor, loaded);
    checkBatch(inputs, loaded.maxBatchSize);
    return { inputs, carry: form };
  },
  postprocess: (outputs, { carry }) => writeReply(outputs, carry),
});
