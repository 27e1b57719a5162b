import { isPick, type Pick, type PipelineNode, type PipelineSpec, parsePick } from '@perch/contracts';

/** A tensor as a model server's own configuration says it. */
export interface ConfigTensor {
  name: string;
  data_type: string;
  dims: (number | string)[];
}

/** What the model behind a node takes and answers. */
export interface NodeModel {
  /** Its name in the repository. */
  name: string;
  maxBatchSize: number;
  inputs: readonly ConfigTensor[];
  outputs: readonly ConfigTensor[];
  /** Its processing is more than tensors as JSON. */
  processing: string | null;
}

/** The text of an ensemble that does the same, or why there is none. */
export type EnsemblePlan = { text: string } | { why: string };

/** A pipeline's tensors by the names that the ensemble gives them: `$body.x` is its input `x`, `$detect.y` is `detect_y`. */
const tensorOf = ({ root, steps }: Pick): string | undefined => {
  const [step, ...more] = steps;
  if (step === undefined || step === 'all' || !('field' in step) || more.length > 0) return undefined;
  return root === 'body' ? step.field : `${root}__${step.field}`;
};

const unlike = ['when', 'map', 'fallback', 'after', 'timeoutMs', 'concurrency'] as const;

/** Tensor by input of the node, or why it is no step of an ensemble. */
function mappingOf(value: unknown, what: string): Map<string, string> | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return `${what} is no object of picks, one for each tensor`;
  const found = new Map<string, string>();
  for (const [key, one] of Object.entries(value)) {
    const pick = typeof one === 'string' && isPick(one) ? parsePick(one) : undefined;
    const tensor = pick && typeof pick !== 'string' && !pick.optional ? tensorOf(pick) : undefined;
    if (tensor === undefined) return `${what}.${key} is not one whole tensor, such as $body.x or $node.y`;
    found.set(key, tensor);
  }
  return found;
}

function stepOf(name: string, node: PipelineNode, model: NodeModel): string | Map<string, string> {
  const field = unlike.find((one) => node[one] !== undefined);
  if (field) return `node ${name} has ${field}, which an ensemble has not`;
  if (model.processing !== null) return `node ${name} has processing of its own (${model.processing})`;
  const mapping = mappingOf(node.input, `nodes.${name}.input`);
  if (typeof mapping === 'string') return mapping;
  const missing = model.inputs.find((input) => !mapping.has(input.name));
  return missing ? `node ${name} is not given ${missing.name}` : mapping;
}

const text = (value: string) => JSON.stringify(value);
const tensorText = (name: string, { data_type, dims }: ConfigTensor) =>
  `{ name: ${text(name)} data_type: ${data_type} dims: [ ${dims.join(', ')} ] }`;
const mapText = (kind: 'input_map' | 'output_map', entries: Iterable<readonly [string, string]>) =>
  [...entries].map(([key, value]) => `        ${kind} { key: ${text(key)} value: ${text(value)} }`).join('\n');

/**
 * A pipeline whose nodes are models alone, tensors in and tensors out, is an ensemble to Triton; anything else is not:
 * conditions, lists, fallbacks, limits, modules and processing are the router's work.
 */
export function planEnsemble(name: string, spec: PipelineSpec, models: ReadonlyMap<string, NodeModel>): EnsemblePlan {
  const module = Object.entries(spec.nodes).find(([, node]) => node.module !== undefined);
  if (module) return { why: `node ${module[0]} is a module, which the router runs` };
  const steps = new Map<string, Map<string, string>>();
  for (const [node, one] of Object.entries(spec.nodes)) {
    const step = stepOf(node, one, models.get(node)!);
    if (typeof step === 'string') return { why: step };
    steps.set(node, step);
  }
  const outputs = mappingOf(spec.output, 'output');
  if (typeof outputs === 'string') return { why: outputs };
  const sizes = [...models.values()].map(({ maxBatchSize }) => maxBatchSize);
  if (sizes.some((size) => size === 0) && sizes.some((size) => size > 0))
    return { why: 'some of its models batch and others do not' };
  const inputs = inputsOf(steps, models);
  const made = madeOf(models);
  const lost = [...outputs].find(([, tensor]) => !made.has(tensor) && !inputs.has(tensor));
  if (lost) return { why: `output.${lost[0]} is nothing that a node answers` };
  const renamed = renameOutputs(outputs, inputs);
  if (typeof renamed === 'string') return { why: renamed };
  const named = (tensor: string) => renamed.get(tensor) ?? tensor;
  const stepTexts = [...steps].map(([node, mapping]) => {
    const model = models.get(node)!;
    const input = mapText(
      'input_map',
      [...mapping].map(([key, value]) => [key, named(value)] as const),
    );
    const output = mapText(
      'output_map',
      model.outputs.map((one) => [one.name, named(`${node}__${one.name}`)] as const),
    );
    return `    {\n      model_name: ${text(model.name)} model_version: -1\n${input}\n${output}\n    }`;
  });
  return {
    text: [
      `name: ${text(name)}`,
      'platform: "ensemble"',
      `max_batch_size: ${Math.min(...sizes)}`,
      `input [\n${[...inputs].map(([tensor, one]) => `  ${tensorText(tensor, one)}`).join(',\n')}\n]`,
      `output [\n${[...outputs].map(([key, tensor]) => `  ${tensorText(key, made.get(tensor)!)}`).join(',\n')}\n]`,
      `ensemble_scheduling {\n  step [\n${stepTexts.join(',\n')}\n  ]\n}`,
      '',
    ].join('\n'),
  };
}

/** The body's tensors, as the first model that takes one declares it. */
function inputsOf(steps: ReadonlyMap<string, Map<string, string>>, models: ReadonlyMap<string, NodeModel>) {
  const found = new Map<string, ConfigTensor>();
  for (const [node, mapping] of steps)
    for (const [key, tensor] of mapping) {
      const declared = models.get(node)!.inputs.find((one) => one.name === key);
      if (declared && !tensor.includes('__') && !found.has(tensor)) found.set(tensor, declared);
    }
  return found;
}

const madeOf = (models: ReadonlyMap<string, NodeModel>): Map<string, ConfigTensor> =>
  new Map([...models].flatMap(([node, { outputs }]) => outputs.map((one) => [`${node}__${one.name}`, one] as const)));

/** What the reply calls a tensor is what the ensemble must call it, too. */
function renameOutputs(outputs: ReadonlyMap<string, string>, inputs: ReadonlyMap<string, ConfigTensor>) {
  const renamed = new Map<string, string>();
  for (const [key, tensor] of outputs) {
    if (inputs.has(tensor)) return `output.${key} is the request's own ${tensor}, which an ensemble cannot answer`;
    if (inputs.has(key)) return `output.${key} has the name of an input`;
    if (renamed.has(tensor)) return `output has ${tensor.replace('__', '.')} twice`;
    renamed.set(tensor, key);
  }
  return renamed;
}
