import { AppError, type ModuleFixture, moduleFixture, parseWith } from '@perch/contracts';

/** Throws `invalid` that names the file and what is wrong in it. */
export function parseFixture(text: string, path: string): ModuleFixture {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new AppError('invalid', `${path}: is no JSON: ${(error as Error).message}`);
  }
  const parsed = parseWith(moduleFixture, json, path);
  for (const [field, file] of Object.entries(parsed.files ?? {}))
    if (file.startsWith('/') || file.split('/').includes('..'))
      throw new AppError('invalid', `${path}: files.${field}: ${file} is not beside the fixture`);
  return parsed;
}

/** The model's answers to a fixture, written by `processing test --record`; not part of the module. */
export const isRecording = (path: string): boolean => path.endsWith('.recorded.json');
export const recordingOf = (path: string): string => path.replace(/\.json$/, '.recorded.json');
export const isFixture = (path: string): boolean => path.endsWith('.json') && !isRecording(path);
