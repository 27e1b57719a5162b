import { AppError, isGoldenPath, maxGoldenBytes, mostGoldenRequests, parseGolden } from '@perch/contracts';
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
    return [...faults, ...(await goldenFaults(upload))];
  },
};

/** What cannot be asked would fail on each server. */
async function goldenFaults(upload: UploadSight): Promise<UploadFault[]> {
  const paths = upload.files.map(({ path }) => path).filter(isGoldenPath);
  if (paths.length > mostGoldenRequests)
    return [
      { path: 'golden', message: `holds ${paths.length} golden requests; a version has at most ${mostGoldenRequests}` },
    ];
  const faults: UploadFault[] = [];
  for (const path of paths) {
    try {
      parseGolden(await upload.text(path, maxGoldenBytes), path);
    } catch (error) {
      if (!isFault(error)) throw error;
      faults.push({ path, message: error.message.replace(`${path}: `, '') });
    }
  }
  return faults;
}

const isFault = (error: unknown): error is AppError =>
  error instanceof AppError && (error.code === 'invalid' || error.code === 'too_large');

async function messagesOf(upload: UploadSight, config: ReturnType<typeof configFiles>[number]): Promise<string[]> {
  try {
    const text = await upload.text(config.path);
    const sight = configTexts.read(text, config.path);
    const rules = configFaults(parseModelConfig(text, config.path));
    return [...rules, ...configFileFaults(config, sight, upload.files, upload.graphs)];
  } catch (error) {
    if (!isFault(error)) throw error;
    return [error.message.replace(`${config.path}, `, '')];
  }
}
