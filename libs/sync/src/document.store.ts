import { readFile } from 'node:fs/promises';
import { desiredServer } from '@perch/contracts';
import { type Documents, noDocuments } from './document.plan.ts';
import { replaceFile } from './replace-file.ts';

/** The agent's documents on disk: what it goes by when nobody can be asked. */
export class DocumentStore {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** No file gives no documents; so does one that cannot be read, and `fault` then says why. */
  async load(): Promise<{ documents: Documents; fault?: string }> {
    const text = await readFile(this.path, 'utf8').catch(() => undefined);
    if (text === undefined) return { documents: noDocuments };
    try {
      const { accepted, pending } = JSON.parse(text) as Record<string, unknown>;
      const schema = desiredServer.nullable();
      return { documents: { accepted: schema.parse(accepted), pending: schema.parse(pending) } };
    } catch {
      return { documents: noDocuments, fault: `${this.path} holds no documents of this program` };
    }
  }

  async save(documents: Documents): Promise<void> {
    await replaceFile(this.path, JSON.stringify(documents), 0o600);
  }
}
