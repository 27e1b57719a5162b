import { AppError, type Signature, type Tensor, type TensorSpec, type Tensors } from '@perch/contracts/plain';
import { fromHalves } from '../half.ts';
import { asFloat32, asUint16 } from '../tensor.ts';

const isFloat = ({ datatype }: TensorSpec) => datatype === 'FP32' || datatype === 'FP16';

/** The output to read: named, else the only floating one, else the first of `usual` names. Throws `invalid`. */
export function findOutput(
  { outputs }: Signature,
  wish: { name: string | undefined; option: string; usual: readonly string[]; builtin: string },
): TensorSpec {
  const names = outputs.map((output) => output.name).join(', ');
  const floats = outputs.filter(isFloat);
  const refuse = (message: string): never => {
    throw new AppError('invalid', `processing ${wish.builtin}: ${message}`);
  };
  if (wish.name !== undefined) {
    const named = outputs.find(({ name }) => name === wish.name);
    if (!named) return refuse(`the model has no output "${wish.name}"; it has ${names}`);
    return isFloat(named) ? named : refuse(`output "${named.name}" is ${named.datatype}, wanted FP32 or FP16`);
  }
  const usual = wish.usual.map((name) => floats.find((output) => output.name === name)).find((output) => output);
  return (
    usual ?? (floats.length === 1 ? floats[0]! : refuse(`name one of the outputs ${names} in options.${wish.option}`))
  );
}

/** Values of an output as float32, one row for each example. Throws `upstream` where it is not what was promised. */
export function readRows(
  outputs: Tensors,
  name: string,
  { count, batched }: { count: number; batched: boolean },
): { values: Float32Array; shape: readonly number[] } {
  const tensor: Tensor | undefined = outputs[name];
  if (!tensor) throw new AppError('upstream', `the model server left out output "${name}"`);
  const shape = batched ? tensor.shape : [1, ...tensor.shape];
  const values = tensor.datatype === 'FP16' ? fromHalves(asUint16(tensor)) : asFloat32(tensor);
  if (shape.length < 2 || shape[0] !== count || values.length === 0)
    throw new AppError(
      'upstream',
      `output "${name}" has shape [${tensor.shape.join(', ')}], wanted ${count} rows, one for each example`,
    );
  return { values, shape };
}
