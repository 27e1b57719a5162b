import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { Ports, Secrets } from './program.plan.ts';

/** What one `perch up` leaves for the next one on the same folder. */
export interface UpState {
  secrets: Secrets;
  ports: Partial<Ports & { postgres: number }>;
  /** Children of the last run: any that still lives was left behind by a kill. */
  children: number[];
}

const fresh = (): UpState => ({
  secrets: {
    adminKey: `pk_local_${randomBytes(24).toString('base64url')}`,
    joinServer: `pj_local_${randomBytes(24).toString('base64url')}`,
    joinRouter: `pj_local_${randomBytes(24).toString('base64url')}`,
  },
  ports: {},
  children: [],
});

/** State of a data folder, readable by its owner alone: it holds keys. */
export class StateStore {
  constructor(private readonly path: string) {}

  async read(): Promise<UpState> {
    const text = await readFile(this.path, 'utf8').catch(() => undefined);
    try {
      return text === undefined ? fresh() : { ...fresh(), ...(JSON.parse(text) as UpState) };
    } catch {
      return fresh(); // cut off by a full disk: new keys do no harm, the control plane takes the ones it is given
    }
  }

  async write(state: UpState): Promise<void> {
    const staging = `${this.path}.new`;
    await writeFile(staging, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
    await rename(staging, this.path);
  }
}
