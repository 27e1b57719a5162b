import {
  AppError,
  isGoldenPath,
  maxGoldenBytes,
  maxParityBytes,
  mostGoldenRequests,
  parseGolden,
  tokenizerOfParity,
} from '@perch/contracts';
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
    return [...faults, ...(await goldenFaults(upload)), ...(await parityFaults(upload))];
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

/** A tokenizer of which other tokens come here than at the reference would be refused by each router. */
async function parityFaults(upload: UploadSight): Promise<UploadFault[]> {
  const faults: UploadFault[] = [];
  for (const { path } of upload.files) {
    const tokenizer = tokenizerOfParity(path);
    if (tokenizer === undefined) continue;
    try {
      if (!upload.files.some((file) => file.path === tokenizer))
        throw new AppError('invalid', `${path}: there is no ${tokenizer} that it could be about`);
      const { checkTokenizer } = await import('@perch/processing/host');
      await checkTokenizer(
        { path: tokenizer, text: await upload.text(tokenizer, maxTokenizerBytes) },
        { path, text: await upload.text(path, maxParityBytes) },
      );
    } catch (error) {
      if (!isFault(error)) throw error;
      faults.push({ path, message: error.message.replace(`${path}: `, '') });
    }
  }
  return faults;
}

const maxTokenizerBytes = 64 * 1_048_576;

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
