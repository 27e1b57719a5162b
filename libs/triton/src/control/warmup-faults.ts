import type { ModelConfig } from './model-config.ts';

interface WarmupInput {
  data_type?: string | number;
  dims?: number[];
  zero_data?: boolean;
  random_data?: boolean;
  input_data_file?: string;
}
interface Warmup {
  name?: string;
  batch_size?: number;
  inputs?: Record<string, WarmupInput>;
}

function inputFaults(thing: string, input: WarmupInput): string[] {
  const faults: string[] = [];
  if (input.data_type === undefined || input.data_type === 'TYPE_INVALID') faults.push(`${thing} has no data_type`);
  if ((input.dims ?? []).some((size) => size < 1))
    faults.push(`${thing}: a size in dims [${input.dims!.join(', ')}] is not at least 1`);
  if ([input.zero_data, input.random_data, input.input_data_file].every((data) => data === undefined))
    faults.push(`${thing} wants zero_data, random_data or input_data_file`);
  return faults;
}

/** Against the tensors that the configuration declares; one that declares none is completed from the model. */
function fitFaults(config: ModelConfig, { name = '', inputs = {} }: Warmup): string[] {
  const declared = config.input ?? [];
  if (declared.length === 0) return [];
  const faults = Object.keys(inputs)
    .filter((input) => !declared.some((tensor) => tensor.name === input))
    .map((input) => `model_warmup '${name}' has the input '${input}', which the model has not`);
  for (const tensor of declared) {
    const given = inputs[tensor.name ?? ''];
    const thing = `model_warmup '${name}': input '${tensor.name}'`;
    if (!given) {
      if (!tensor.optional) faults.push(`${thing} is missing`);
      continue;
    }
    if (given.data_type !== undefined && given.data_type !== tensor.data_type)
      faults.push(`${thing} is ${given.data_type}, the model wants ${tensor.data_type}`);
    const dims = tensor.dims ?? [];
    const own = given.dims ?? [];
    if (dims.length !== own.length || dims.some((size, at) => size !== -1 && size !== own[at]))
      faults.push(`${thing} has dims [${own.join(', ')}], the model wants [${dims.join(', ')}]`);
  }
  return faults;
}

/** What Triton would refuse in warm-up requests; one that fails to start may end the whole server, seen on 2.51. */
export function warmupFaults(config: ModelConfig): string[] {
  const most = Math.max(config.max_batch_size ?? 0, 1);
  return ((config['model_warmup'] ?? []) as Warmup[]).flatMap((warmup) => {
    const name = `model_warmup '${warmup.name ?? ''}'`;
    const inputs = Object.entries(warmup.inputs ?? {});
    return [
      ...((warmup.batch_size ?? 0) > most ? [`${name}: batch_size ${warmup.batch_size} is above ${most}`] : []),
      ...(inputs.length === 0 ? [`${name} has no inputs`] : []),
      ...inputs.flatMap(([input, value]) => inputFaults(`${name}: input '${input}'`, value)),
      ...fitFaults(config, warmup),
    ];
  });
}
