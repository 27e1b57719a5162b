import { readFile } from 'node:fs/promises';
import { type Enrolled, enrolled } from '@perch/contracts';
import { replaceFile } from '@perch/sync';

/** Who this agent is to the control plane; the token is readable by this user alone. */
export class IdentityStore {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Undefined when there is none that can be read: the agent enrols. */
  async load(): Promise<Enrolled | undefined> {
    try {
      return enrolled.parse(JSON.parse(await readFile(this.path, 'utf8')));
    } catch {
      return undefined;
    }
  }

  async save(identity: Enrolled): Promise<void> {
    await replaceFile(this.path, JSON.stringify(identity), 0o600);
  }
}
