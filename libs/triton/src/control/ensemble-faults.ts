import type { ModelConfig } from './model-config.ts';

interface Step {
  model_name?: string;
  model_version?: number;
  input_map?: Record<string, string>;
  output_map?: Record<string, string>;
}

const names = (tensors: readonly { name?: string }[] | undefined): string[] =>
  (tensors ?? []).map(({ name }) => name ?? '');

function stepFaults(step: Step, index: number): string[] {
  const thing = step.model_name ? `step '${step.model_name}'` : `step ${index + 1}`;
  const faults: string[] = [];
  if (!step.model_name) faults.push(`${thing} has no model_name`);
  if ((step.model_version ?? 0) < -1) faults.push(`${thing}: model_version wants -1 (the newest) or a number`);
  if (Object.keys(step.input_map ?? {}).length === 0) faults.push(`${thing} has no input_map`);
  if (Object.keys(step.output_map ?? {}).length === 0) faults.push(`${thing} has no output_map`);
  return faults;
}

/** Every tensor comes from one place, and every one that is given is used. */
function flowFaults(config: ModelConfig, steps: readonly Step[]): string[] {
  const faults: string[] = [];
  const inputs = names(config.input);
  const made: string[] = [];
  for (const tensor of steps.flatMap(({ output_map }) => Object.values(output_map ?? {}))) {
    if (made.includes(tensor)) faults.push(`ensemble tensor '${tensor}' is produced more than once`);
    made.push(tensor);
  }
  const produced = [...inputs, ...made];
  const used = new Set(steps.flatMap(({ input_map }) => Object.values(input_map ?? {})));
  for (const tensor of used)
    if (!produced.includes(tensor)) faults.push(`ensemble tensor '${tensor}' is used by a step and produced by none`);
  for (const tensor of inputs) if (!used.has(tensor)) faults.push(`ensemble input '${tensor}' is used by no step`);
  for (const tensor of names(config.output))
    if (!produced.includes(tensor)) faults.push(`ensemble output '${tensor}' is produced by no step`);
  return [...faults, ...circleFaults(steps, inputs)];
}

/** Steps run when their tensors are there; those that never get theirs wait for one another. */
function circleFaults(steps: readonly Step[], inputs: readonly string[]): string[] {
  const there = new Set(inputs);
  let waiting = [...steps];
  for (;;) {
    const ready = waiting.filter(({ input_map }) =>
      Object.values(input_map ?? {}).every((tensor) => there.has(tensor)),
    );
    if (ready.length === 0) break;
    for (const { output_map } of ready) for (const tensor of Object.values(output_map ?? {})) there.add(tensor);
    waiting = waiting.filter((step) => !ready.includes(step));
  }
  const outputs = new Set(waiting.flatMap(({ output_map }) => Object.values(output_map ?? {})));
  const circle = waiting.filter(({ input_map }) =>
    Object.values(input_map ?? {}).some((tensor) => outputs.has(tensor)),
  );
  return circle.length > 0
    ? [`steps wait for one another: ${circle.map(({ model_name }) => model_name ?? '').join(', ')}`]
    : [];
}

/** What Triton would refuse in an ensemble; its steps are called by the names that stand there. */
export function ensembleFaults(config: ModelConfig): string[] {
  if (config.platform !== 'ensemble') return ["ensemble_scheduling wants platform 'ensemble'"];
  if (!config.ensemble_scheduling) return ["platform 'ensemble' wants ensemble_scheduling"];
  const steps = (config.ensemble_scheduling.step ?? []) as Step[];
  const faults: string[] = [];
  if (steps.length === 0) faults.push('ensemble_scheduling wants at least one step');
  for (const field of ['instance_group', 'optimization', 'model_warmup', 'backend'])
    if (config[field] !== undefined) faults.push(`an ensemble takes no ${field}`);
  for (const kind of ['input', 'output'] as const)
    if ((config[kind] ?? []).length === 0) faults.push(`an ensemble wants at least one ${kind}`);
  return [...faults, ...steps.flatMap(stepFaults), ...flowFaults(config, steps)];
}
