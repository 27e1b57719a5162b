import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@perch/contracts';

/** One installation of Perch that this person talks to. */
export interface Context {
  url: string;
  routerUrl?: string;
  apiKey?: string;
}
export interface ContextFile {
  current: string | null;
  contexts: Record<string, Context>;
}

/** The contexts of one person: a JSON file that only they may read, for it holds keys. */
export class ContextStore {
  readonly path: string;

  constructor(private readonly folder: string) {
    this.path = join(folder, 'contexts.json');
  }

  async read(): Promise<ContextFile> {
    const text = await readFile(this.path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw new AppError('forbidden', `cannot read ${this.path}: ${error.message}`, { cause: error });
    });
    if (text === undefined) return { current: null, contexts: {} };
    try {
      const file = JSON.parse(text) as Partial<ContextFile>;
      return { current: file.current ?? null, contexts: file.contexts ?? {} };
    } catch (error) {
      throw new AppError('invalid', `${this.path} is not JSON; mend or remove it`, { cause: error });
    }
  }

  async write(file: ContextFile): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const staging = `${this.path}.${randomBytes(4).toString('hex')}`;
    await writeFile(staging, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600 });
    await rename(staging, this.path);
    await chmod(this.path, 0o600);
  }

  /** Adds or replaces one, and makes it the current one. */
  async save(name: string, context: Context, makeCurrent = true): Promise<void> {
    const file = await this.read();
    file.contexts[name] = context;
    if (makeCurrent || !file.current) file.current = name;
    await this.write(file);
  }

  async use(name: string): Promise<void> {
    const file = await this.read();
    known(file, name);
    await this.write({ ...file, current: name });
  }

  async remove(name: string): Promise<void> {
    const file = await this.read();
    known(file, name);
    delete file.contexts[name];
    if (file.current === name) file.current = null;
    await this.write(file);
  }
}

function known(file: ContextFile, name: string): void {
  if (file.contexts[name]) return;
  const names = Object.keys(file.contexts).join(', ') || 'none';
  throw new AppError('not_found', `there is no context ${name} (there are: ${names}); add it with perch login`);
}
