import { AppError, type TensorSpec } from '@perch/contracts/plain';
import { kindOf } from '../json-body.ts';

/** One input as the client wrote it. */
export interface GivenTensor {
  name: string;
  data: unknown;
  datatype?: unknown;
  shape?: unknown;
}

/** How the client spoke; the reply is written the same way. `tensors` is the protocol's `{inputs: [{name, data}]}`. */
export interface GivenBody {
  form: 'named' | 'tensors';
  given: GivenTensor[];
}

type Fields = Record<string, unknown>;
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isTensorList = (value: unknown): value is Fields[] =>
  Array.isArray(value) && value.length > 0 && value.every((item) => isObject(item) && 'name' in item && 'data' in item);

const list = (inputs: readonly TensorSpec[]) => inputs.map(({ name }) => `"${name}"`).join(', ');

/** Sorts a parsed body into inputs. Throws `invalid` for a body of another kind. */
export function readBody(body: unknown, inputs: readonly TensorSpec[]): GivenBody {
  if (isObject(body)) {
    if (isTensorList(body['inputs'])) return { form: 'tensors', given: body['inputs'].map(readTensor) };
    return { form: 'named', given: Object.entries(body).map(([name, data]) => ({ name, data })) };
  }
  if (inputs.length === 1 && body !== null && body !== undefined)
    return { form: 'named', given: [{ name: inputs[0]!.name, data: body }] };
  throw new AppError('invalid', `the body is ${kindOf(body)}, wanted an object with the inputs ${list(inputs)}`);
}

function readTensor({ name, data, datatype, shape }: Fields, index: number): GivenTensor {
  if (typeof name !== 'string')
    throw new AppError('invalid', `inputs[${index}].name is ${kindOf(name)}, wanted a string`);
  return { name, data, datatype, shape };
}

/** Every wanted input once and nothing else. Throws `invalid` naming what is unknown, doubled or missing. */
export function checkNames(given: readonly GivenTensor[], inputs: readonly TensorSpec[]): void {
  for (const [i, { name }] of given.entries()) {
    if (!inputs.some((input) => input.name === name))
      throw new AppError(
        'invalid',
        `unknown input ${JSON.stringify(name.slice(0, 64))}: the model has ${list(inputs)}`,
      );
    if (given.findIndex((other) => other.name === name) !== i)
      throw new AppError('invalid', `input "${name}" is given twice`);
  }
  const missing = inputs.filter((input) => !input.optional && !given.some(({ name }) => name === input.name));
  if (missing.length > 0)
    throw new AppError('invalid', `missing input ${list(missing)}: the model has ${list(inputs)}`);
}
