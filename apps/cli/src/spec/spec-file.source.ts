import { readFile, stat } from 'node:fs/promises';
import { dirname, isAbsolute, resolve } from 'node:path';
import { AppError } from '@perch/contracts';
import { parseAllDocuments } from 'yaml';

const maxFileBytes = 4 * 1024 * 1024;

/** One document of a file: what was written, and where, for messages. */
export interface SpecDocument {
  where: string;
  spec: Record<string, unknown>;
}

/** Text of a file; `-`: of the standard input. */
export async function readText(file: string): Promise<string> {
  if (file === '-') {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString('utf8');
  }
  const info = await stat(file).catch(() => undefined);
  if (!info?.isFile()) throw new AppError('not_found', `${file}: no such file`);
  if (info.size > maxFileBytes)
    throw new AppError('invalid', `${file}: is over ${maxFileBytes} bytes; that is no specification`);
  return readFile(file, 'utf8');
}

/**
 * The documents of a YAML or JSON file (`-`: standard input); empty ones are left out. `engine.config` that names a file
 * (one line, ending in .pbtxt or .txt) is replaced by its text; the path counts from the file's own folder.
 */
export async function readSpecs(file: string): Promise<SpecDocument[]> {
  const text = await readText(file);
  const folder = file === '-' ? process.cwd() : dirname(resolve(file));
  const documents = parseAllDocuments(text, { uniqueKeys: true });
  const found: SpecDocument[] = [];
  for (const [at, document] of [...documents].entries()) {
    const where = documents.length > 1 ? `${file}, document ${at + 1}` : file;
    const fault = document.errors[0];
    if (fault) throw new AppError('invalid', `${where}: ${fault.message.split('\n')[0]}`);
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    if (value === null || value === undefined) continue;
    for (const spec of Array.isArray(value) ? value : [value]) {
      if (typeof spec !== 'object' || spec === null || Array.isArray(spec))
        throw new AppError('invalid', `${where}: wants an object with kind, name and model`);
      found.push({ where, spec: await withConfig(spec as Record<string, unknown>, folder, where) });
    }
  }
  if (found.length === 0) throw new AppError('invalid', `${file}: holds no document`);
  return found;
}

async function withConfig(
  spec: Record<string, unknown>,
  folder: string,
  where: string,
): Promise<Record<string, unknown>> {
  const engine = spec['engine'];
  if (typeof engine !== 'object' || engine === null) return spec;
  const config = (engine as Record<string, unknown>)['config'];
  if (typeof config !== 'string' || !/^\S.*\.(pbtxt|txt)$/.test(config)) return spec;
  return {
    ...spec,
    engine: { ...engine, config: await readConfigFile(isAbsolute(config) ? config : resolve(folder, config), where) },
  };
}

export async function readConfigFile(path: string, where: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new AppError('not_found', `${where}: cannot read the config file ${path}: ${error.code}`);
  });
}
