import type { ConfigTensor, ModelConfig } from './model-config.ts';

const product = (sizes: readonly number[]): number => sizes.filter((size) => size !== -1).reduce((a, b) => a * b, 1);
const wildcards = (sizes: readonly number[]): number => sizes.filter((size) => size === -1).length;
const isBadSize = (size: number): boolean => size !== -1 && size < 1;

export function tensorFaults(kind: string, tensor: ConfigTensor, index: number, maxBatchSize: number): string[] {
  const faults: string[] = [];
  const thing = tensor.name ? `${kind} '${tensor.name}'` : `${kind} ${index + 1}`;
  const dims = tensor.dims ?? [];
  if (!tensor.name) faults.push(`${thing} has no name`);
  if (tensor.data_type === undefined || tensor.data_type === 'TYPE_INVALID' || typeof tensor.data_type === 'number')
    faults.push(`${thing} has no data_type`);
  if (dims.length === 0) faults.push(`${thing} has no dims; give at least one`);
  if (dims.some(isBadSize)) faults.push(`${thing}: a size in dims [${dims.join(', ')}] is neither -1 nor at least 1`);
  const image = tensor['format'] !== undefined && tensor['format'] !== 'FORMAT_NONE';
  if (image && dims.length !== 3) faults.push(`${thing}: ${String(tensor['format'])} wants three dims`);
  const shape = tensor.reshape ? (tensor.reshape.shape ?? []) : undefined;
  if (!shape || dims.length === 0) return faults;
  if (shape.some(isBadSize))
    faults.push(`${thing}: a size in reshape [${shape.join(', ')}] is neither -1 nor at least 1`);
  if (shape.length === 0 && maxBatchSize === 0) faults.push(`${thing}: an empty reshape wants a max_batch_size over 0`);
  if (wildcards(shape) !== wildcards(dims))
    faults.push(`${thing}: reshape [${shape.join(', ')}] must hold as many -1 as dims [${dims.join(', ')}]`);
  else if (product(shape) !== product(dims))
    faults.push(`${thing}: reshape [${shape.join(', ')}] and dims [${dims.join(', ')}] differ in their element count`);
  return faults;
}

export const duplicates = (kind: string, tensors: readonly ConfigTensor[]): string[] =>
  tensors
    .map(({ name }) => name)
    .filter((name, index, names) => name && names.indexOf(name) !== index)
    .map((name) => `${kind} '${name}' is given twice`);

interface BatchTensor {
  kind?: string | number;
  target_name?: string[];
  data_type?: string | number;
  source_input?: string[];
}

/** Tensors that are made of a batch or cut out of one. */
export function batchTensorFaults(config: ModelConfig): string[] {
  const known = (kind: 'input' | 'output', name: string) => (config[kind] ?? []).some((tensor) => tensor.name === name);
  const sources = (thing: string, tensor: BatchTensor): string[] => {
    const names = tensor.source_input ?? [];
    if (names.length !== 1) return [`${thing} wants one source_input, got ${names.length}`];
    const declares = (config.input ?? []).length > 0;
    return declares && !known('input', names[0]!) ? [`${thing}: there is no input '${names[0]}'`] : [];
  };
  const inputs = ((config['batch_input'] ?? []) as BatchTensor[]).flatMap((tensor, index) => {
    const thing = `batch_input ${index + 1}`;
    const wrong = tensor.data_type !== 'TYPE_INT32' && tensor.data_type !== 'TYPE_FP32';
    return [...sources(thing, tensor), ...(wrong ? [`${thing}: data_type is TYPE_INT32 or TYPE_FP32`] : [])];
  });
  const outputs = ((config['batch_output'] ?? []) as BatchTensor[]).flatMap((tensor, index) => {
    const thing = `batch_output ${index + 1}`;
    const unknown = (tensor.target_name ?? []).filter(
      (name) => (config.output ?? []).length > 0 && !known('output', name),
    );
    return [...sources(thing, tensor), ...unknown.map((name) => `${thing}: there is no output '${name}'`)];
  });
  return [...inputs, ...outputs];
}
