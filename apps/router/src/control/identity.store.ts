import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const identity = z.object({ id: z.string(), token: z.string() });
export type Identity = z.infer<typeof identity>;

/** Who this router is to the control plane: kept on disk, readable by its owner only. */
export class IdentityStore {
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async load(): Promise<Identity | undefined> {
    const text = await readFile(join(this.folder, 'identity.json'), 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    try {
      return identity.parse(JSON.parse(text));
    } catch {
      return undefined; // unreadable is as good as none: enrol again
    }
  }

  async save(value: Identity): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    const file = join(this.folder, 'identity.json');
    const handle = await open(`${file}.new`, 'w', 0o600);
    try {
      await handle.write(JSON.stringify(value));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(`${file}.new`, file);
  }
}
