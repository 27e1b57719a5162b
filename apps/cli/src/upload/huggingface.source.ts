import { readFile } from 'node:fs/promises';
import { AppError } from '@perch/contracts';
import type { HuggingFaceFiles } from './huggingface-facts.plan.ts';
import type { FoundFile } from './manifest.source.ts';

const mostBytes = 16 * 1024 * 1024;

/** Reads a JSON file of the folder; undefined where it has none. Throws `invalid` for one that is no JSON. */
async function readJson(files: readonly FoundFile[], path: string): Promise<unknown> {
  const found = files.find((file) => file.path === path);
  if (!found) return undefined;
  if (found.size > mostBytes)
    throw new AppError('invalid', `${path} has ${found.size} bytes, wanted a small JSON file`);
  try {
    return JSON.parse(await readFile(found.file, 'utf8'));
  } catch {
    throw new AppError('invalid', `${path} is not valid JSON`);
  }
}

const object = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;

/** The files of a Hugging Face folder that say what its model is. */
export async function readHuggingFaceFiles(files: readonly FoundFile[]): Promise<HuggingFaceFiles> {
  const read = async (path: string) => object(await readJson(files, path));
  const modules = await readJson(files, 'modules.json');
  const found = {
    config: await read('config.json'),
    tokenizerConfig: await read('tokenizer_config.json'),
    sentenceBert: await read('sentence_bert_config.json'),
    pooling: await read('1_Pooling/config.json'),
    preprocessor: await read('preprocessor_config.json'),
    modules: Array.isArray(modules) ? modules.flatMap((step) => object(step) ?? []) : undefined,
  };
  const given = Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
  return { ...given, hasTokenizer: files.some(({ path }) => path === 'tokenizer.json') };
}
