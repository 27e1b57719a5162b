import { elementBytes } from '@perch/contracts';
import {
  elementCount,
  elementsOf,
  type InferRequest,
  type NamedTensor,
  requestTag,
  ServingFault,
} from '@perch/triton/server';
import { type DeclaredModel, type DeclaredTensor, fullShape } from './signature.ts';

const batchNote =
  'NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.';

const quoted = (names: Iterable<string>): string => `[${[...names].map((name) => `'${name}'`).join(',')}]`;

function checkNames(model: DeclaredModel, request: InferRequest, fault: (words: string) => ServingFault): void {
  const got = new Set<string>();
  for (const { name } of request.inputs) {
    if (got.has(name)) throw fault(`input '${name}' already exists in request`);
    got.add(name);
  }
  const required = model.inputs.filter(({ optional }) => !optional);
  const missing = required.filter(({ name }) => !got.has(name)).map(({ name }) => name);
  const wanted =
    required.length === model.inputs.length
      ? `${required.length}`
      : `between ${required.length} and ${model.inputs.length}`;
  if (got.size < required.length || got.size > model.inputs.length)
    throw fault(
      `expected ${wanted} inputs but got ${got.size} inputs for model '${model.name}'. Got input(s) ${quoted(got)}, but missing required input(s) ${quoted(missing)}. Please provide all required input(s).`,
    );
  for (const name of got)
    if (!model.inputs.some((input) => input.name === name))
      throw new ServingFault('invalid_argument', `unexpected inference input '${name}' for model '${model.name}'`);
  if (missing.length > 0)
    throw fault(
      `expected ${wanted} inputs but got ${got.size} inputs for model '${model.name}'. Got input(s) ${quoted(got)}, but missing required input(s) ${quoted(missing)}. Please provide all required input(s).`,
    );
  for (const { name } of request.outputs ?? [])
    if (!model.outputs.some((output) => output.name === name))
      throw new ServingFault('invalid_argument', `unexpected inference output '${name}' for model '${model.name}'`);
}

function checkShape(
  model: DeclaredModel,
  input: DeclaredTensor,
  tensor: NamedTensor,
  fault: (words: string) => ServingFault,
): void {
  const { shape, datatype } = tensor;
  if (datatype !== input.datatype)
    throw fault(
      `inference input '${input.name}' data-type is '${datatype}', but model '${model.name}' expects '${input.datatype}'`,
    );
  const wanted = fullShape(model, input.dims);
  if (shape.length !== wanted.length || shape.some((size, i) => size < 0 || (wanted[i] !== -1 && wanted[i] !== size)))
    throw fault(
      `unexpected shape for input '${input.name}' for model '${model.name}'. Expected [${wanted.join(',')}], got [${shape.join(',')}]. ${model.maxBatchSize > 0 ? batchNote : ''}`,
    );
}

function checkBytes(
  model: DeclaredModel,
  { name, datatype, shape, bytes }: NamedTensor,
  fault: (words: string) => ServingFault,
): void {
  const count = elementCount(shape);
  if (datatype !== 'BYTES') {
    const wanted = count * elementBytes[datatype as keyof typeof elementBytes];
    if (wanted !== bytes.length)
      throw fault(
        `input byte size mismatch for input '${name}' for model '${model.name}'. Expected ${wanted}, got ${bytes.length}`,
      );
    return;
  }
  let got: number;
  try {
    got = elementsOf(bytes, name).length;
  } catch (error) {
    throw fault((error as Error).message);
  }
  if (got !== count) throw fault(`expected ${count} string elements for inference input '${name}', got ${got}`);
}

/**
 * Holds a request against what its model declares; throws `invalid_argument` with Triton's texts. Returns its rows (1
 * where the model does not batch) and a key that two requests share when they may be computed together.
 */
export function checkRequest(model: DeclaredModel, request: InferRequest): { rows: number; key: string } {
  const fault = (words: string) => new ServingFault('invalid_argument', requestTag(request.id) + words);
  checkNames(model, request, fault);
  let rows: number | undefined;
  let key = '';
  for (const input of model.inputs) {
    const tensor = request.inputs.find(({ name }) => name === input.name);
    if (!tensor) continue;
    checkShape(model, input, tensor, fault);
    if (model.maxBatchSize > 0) {
      const own = tensor.shape[0]!;
      if (rows !== undefined && own !== rows)
        throw fault(`input '${input.name}' batch size does not match other inputs for '${model.name}'`);
      if (own > model.maxBatchSize)
        throw fault(`inference request batch-size must be <= ${model.maxBatchSize} for '${model.name}'`);
      if (own < 1) throw fault(`inference request batch-size must be >= 1 for '${model.name}'`);
      rows = own;
    }
    checkBytes(model, tensor, fault);
    key += `${input.name}:${tensor.shape.slice(1).join('x')};`;
  }
  return { rows: rows ?? 1, key };
}
