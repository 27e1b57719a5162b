import { AppError } from '@perch/contracts/plain';
import type { FileSource, ModuleFiles } from './contract.ts';

/** What a module's `load` reads files with. */
export function moduleFiles(source: FileSource): ModuleFiles {
  const text = async (path: string): Promise<string> => (await source.read(path)).toString('utf8');
  const json = async (path: string): Promise<unknown> => {
    try {
      return JSON.parse(await text(path));
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw new AppError('invalid', `file ${path} is not valid JSON`);
    }
  };
  return {
    read: (path) => source.read(path),
    list: () => source.list(),
    has: (path) => source.list().includes(path),
    text,
    json,
    labels: async (path = 'labels.txt') =>
      path.endsWith('.json') ? labelsOf(await json(path), path) : linesOf(await text(path)),
    // its tables take a while to load, and few modules want them
    tokenizer: async (path = 'tokenizer.json') => (await import('./text/tokenizer.ts')).readTokenizer(source, path),
  };
}

const linesOf = (text: string): string[] =>
  text.split(/\r?\n/).filter((line, at, lines) => line !== '' || at < lines.length - 1);

/** A list of names, `{"0": "cat", …}`, or a config.json with such an `id2label`. */
function labelsOf(value: unknown, path: string): string[] {
  const given = (value as { id2label?: unknown } | null)?.id2label ?? value;
  const names: unknown[] = Array.isArray(given) ? given : namesByIndex(given);
  if (names.length > 0 && names.every((name) => typeof name === 'string')) return names as string[];
  throw new AppError('invalid', `file ${path} holds no labels, wanted a list of names or names by 0, 1, 2, …`);
}

function namesByIndex(given: unknown): unknown[] {
  if (typeof given !== 'object' || given === null) return [];
  const names = Object.entries(given);
  const list: unknown[] = Array(names.length);
  for (const [index, name] of names)
    if (/^\d{1,7}$/.test(index) && Number(index) < names.length) list[Number(index)] = name;
  return Array.from(list);
}
