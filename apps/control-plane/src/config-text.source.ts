import type { ConfigSight, ConfigTexts } from '@perch/endpoints';
import { type ModelConfig, parseModelConfig, renderModelConfig, writeModelConfig } from '@perch/triton/control';
import { sightOfConfig } from './config-sight.ts';

/** Texts of `config.pbtxt`, read with the parser that the agent renders them with. */
export const configTexts: ConfigTexts = {
  read(text: string, thing: string): ConfigSight {
    const config = parseModelConfig(text, thing);
    return {
      platform: config.platform || config.backend || undefined,
      maxBatchSize: config.max_batch_size,
      declaresInputs: (config.input?.length ?? 0) > 0,
      declaresOutputs: (config.output?.length ?? 0) > 0,
      hasVersionPolicy: config.version_policy !== undefined,
      ...sightOfConfig(config),
      ...stepsOf(config),
    };
  },
  renameSteps(text, names) {
    const config = parseModelConfig(text);
    for (const step of config.ensemble_scheduling?.step ?? []) {
      step.model_name = names.get(step.model_name ?? '') ?? step.model_name ?? '';
      step['model_version'] = -1;
    }
    return writeModelConfig(config);
  },
  // One GPU or more: no kind of instance is chosen on behalf of a server that nobody knows yet.
  render: (name, engine) => renderModelConfig(name, engine, { gpus: 1 }),
};

/** Absent for what is no ensemble. A step without a version takes the newest, as Triton does. */
function stepsOf({ platform, ensemble_scheduling }: ModelConfig): Pick<ConfigSight, 'steps'> {
  if (platform !== 'ensemble' && !ensemble_scheduling) return {};
  const steps = new Map(
    (ensemble_scheduling?.step ?? []).map(({ model_name, ...step }) => {
      const version = step['model_version'];
      return [model_name ?? '', typeof version === 'number' ? version : -1] as const;
    }),
  );
  return { steps: [...steps].map(([model, version]) => ({ model, version })) };
}
