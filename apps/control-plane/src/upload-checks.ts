import { AppError } from '@perch/contracts';
import { configFileFaults, configFiles } from '@perch/endpoints';
import type { UploadChecks, UploadFault, UploadSight } from '@perch/registry';
import { configFaults, parseModelConfig } from '@perch/triton/control';
import { configTexts } from './config-text.source.ts';

/** A version that brings its own configuration is held to what servers will say of it, before it is a draft. */
export const uploadChecks: UploadChecks = {
  async faults(upload: UploadSight): Promise<UploadFault[]> {
    const faults: UploadFault[] = [];
    for (const config of configFiles(upload.files))
      for (const message of await messagesOf(upload, config)) faults.push({ path: config.path, message });
    return faults;
  },
};

async function messagesOf(upload: UploadSight, config: ReturnType<typeof configFiles>[number]): Promise<string[]> {
  try {
    const text = await upload.text(config.path);
    const sight = configTexts.read(text, config.path);
    const rules = configFaults(parseModelConfig(text, config.path));
    return [...rules, ...configFileFaults(config, sight, upload.files, upload.graphs)];
  } catch (error) {
    if (!(error instanceof AppError) || (error.code !== 'invalid' && error.code !== 'too_large')) throw error;
    return [error.message.replace(`${config.path}, `, '')];
  }
}
