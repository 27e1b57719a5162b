import { createHash } from 'node:crypto';
import type { CheckedReply } from './checked-load.ts';
import type { OwnPostgres } from './own-postgres.ts';

/** From when to when one version of an endpoint may answer. */
export interface Window {
  version: number;
  factor: number;
  /** Its deployment was created. */
  fromMs: number;
  /** Nothing of it was loaded any more; Infinity: it lives. */
  toMs: number;
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/**
 * A row tells when its deployment was let go. A server holds the model until its agent gets to it, which faults of the
 * agent, its link or the server hold up by as long as they last; a router that was cut off for longer than `routerGrace`,
 * for whom nobody waits, is answered by it until then. What the answer says is judged whatever the time.
 */
export const unloadMs = 15_000;

/**
 * What each version means and when it lived, from what was uploaded and from the control plane's own tables. Tables that
 * are about to be replaced by a backup are read before, so that nothing is forgotten with them.
 */
export class VersionBook {
  private readonly factors = new Map<string, number>();
  private readonly windows = new Map<string, Window>();
  /** Versions that were shown with other bytes than before: there must be none. */
  readonly changed: string[] = [];
  private readonly digests = new Map<string, string>();

  /** These bytes multiply by `factor`. */
  note(bytes: Uint8Array, factor: number): void {
    this.factors.set(sha256(bytes), factor);
  }

  /** Reads the tables as they are. Windows of deployments that are gone with the tables before stay open. */
  async read(postgres: OwnPostgres): Promise<void> {
    const rows = await postgres.query(
      `select d.id, d.endpoint, d.version, d.state, d.project, d.model, f.sha256,
         extract(epoch from d.created_at) * 1000 as from_ms, extract(epoch from d.since) * 1000 as since_ms
       from deployments d
       join models m on m.project = d.project and m.name = d.model
       join versions v on v.model_id = m.id and v.number = d.version
       join version_files f on f.version_id = v.id`,
    );
    for (const row of rows) {
      const factor = this.factors.get(row['sha256']);
      if (factor === undefined) continue;
      const name = `${row['project']}/${row['model']}/${row['version']}`;
      const known = this.digests.get(name);
      if (known !== undefined && known !== row['sha256']) this.changed.push(name);
      this.digests.set(name, row['sha256']);
      this.windows.set(`${row['endpoint']} ${row['id']}`, {
        version: Number(row['version']),
        factor,
        fromMs: Number(row['from_ms']),
        toMs: row['state'] === 'retired' ? Number(row['since_ms']) + unloadMs : Number.POSITIVE_INFINITY,
      });
    }
  }

  /** Why an answer cannot be right, or undefined. */
  fault(reply: CheckedReply): string | undefined {
    if (Number.isNaN(reply.factor)) return `no multiple of its input: ${reply.words}`;
    const windows = [...this.windows]
      .filter(([key]) => key.startsWith(`${reply.endpoint} `))
      .map(([, window]) => window)
      .filter(({ version }) => version === reply.version);
    if (windows.length === 0) return `version ${reply.version} was never deployed`;
    const same = windows.filter(({ factor }) => factor === reply.factor);
    if (same.length === 0) return `version ${reply.version} does not multiply by ${reply.factor}`;
    if (same.some(({ fromMs, toMs }) => fromMs <= reply.endedAt && toMs >= reply.startedAt)) return undefined;
    return `version ${reply.version} did not live between ${reply.startedAt} and ${reply.endedAt}: ${JSON.stringify(same)}`;
  }
}
