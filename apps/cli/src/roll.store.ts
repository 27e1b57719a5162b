import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

interface RollState {
  done: string[];
  /** How each server was started when it was taken out of service, by id. */
  boots: Record<string, string>;
}

/** How far an unfinished roll is, so that running it again goes on. One file a pool and installation. */
export class RollStore {
  private readonly path: string;
  private state: RollState = { done: [], boots: {} };
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly folder: string,
    thing: string,
  ) {
    this.path = join(folder, 'rolls', `${encodeURIComponent(thing)}.json`);
  }

  /** Ids of the servers that are done. */
  async read(): Promise<ReadonlySet<string>> {
    const text = await readFile(this.path, 'utf8').catch(() => '{}');
    try {
      const { done = [], boots = {} } = JSON.parse(text) as Partial<RollState>;
      this.state = { done: done.map(String), boots };
    } catch {
      // Half written by a run that was killed: doing a server again is harmless.
      this.state = { done: [], boots: {} };
    }
    return new Set(this.state.done);
  }

  /** How it was started before this roll touched it; `now` when this is the first time. */
  async bootBefore(id: string, now: string): Promise<string> {
    const known = this.state.boots[id];
    if (known !== undefined) return known;
    this.state.boots[id] = now;
    await this.write();
    return now;
  }

  async add(id: string): Promise<void> {
    this.state.done.push(id);
    delete this.state.boots[id];
    await this.write();
  }

  async finish(): Promise<void> {
    await rm(this.path, { force: true });
  }

  /** One after the other: several servers may be rolled at once. */
  private write(): Promise<void> {
    this.writing = this.writing.then(async () => {
      await mkdir(join(this.folder, 'rolls'), { recursive: true, mode: 0o700 });
      const staging = `${this.path}.${process.pid}`;
      await writeFile(staging, JSON.stringify(this.state), { mode: 0o600 });
      await rename(staging, this.path);
    });
    return this.writing;
  }
}
