import type { ConfigSight, ConfigTexts } from '@perch/endpoints';
import { parseModelConfig } from '@perch/triton/control';

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
    };
  },
};
