import { Inject, Injectable } from '@nestjs/common';
import type { RouterReport } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { asleepMs, FLEET_OPTIONS, type FleetOptions } from './options.ts';

export type ReportBody = NonNullable<RouterReport['report']>;

export interface RouterRow {
  id: string;
  name: string;
  report: ReportBody | null;
  report_hash: string | null;
  boot_id: string | null;
  enrolled_at: Date;
  last_seen_at: Date;
  /** Since its last word, or since we began to watch when that is later; 0 while nobody does. */
  quiet_ms: string;
}

/** `$1`: milliseconds after which nobody can have been watching. */
const quiet = `(now() - case when now() - i.last_sweep_at > $1 * interval '1 millisecond' then now()
  else greatest(r.last_seen_at, i.watching_since) end)`;
const columns = `r.id, r.name, r.report, r.report_hash, r.boot_id, r.enrolled_at, r.last_seen_at,
  extract(epoch from ${quiet}) * 1000 as quiet_ms`;

/** The only SQL for routers. */
@Injectable()
export class RouterStore {
  private readonly asleepMs: number;

  constructor(@Inject(FLEET_OPTIONS) options: FleetOptions) {
    this.asleepMs = asleepMs(options);
  }

  async insert(tx: Tx, id: string, name: string, tokenHash: string): Promise<void> {
    await tx.query('insert into routers (id, name, token_hash) values ($1, $2, $3)', [id, name, tokenHash]);
  }

  async byToken(tx: Tx, tokenHash: string): Promise<{ id: string } | undefined> {
    const [row] = await tx.query('select id from routers where token_hash = $1 and forgotten_at is null', [tokenHash]);
    return row;
  }

  async beat(tx: Tx, id: string): Promise<Pick<RouterRow, 'report_hash' | 'boot_id' | 'report'>> {
    const [row] = await tx
      .query('update routers set last_seen_at = now() where id = $1 returning report_hash, boot_id, report', [id])
      .then(([rows]) => rows);
    return row;
  }

  async saveReport(tx: Tx, id: string, bootId: string, hash: string, report: ReportBody): Promise<void> {
    await tx.query('update routers set boot_id = $2, report_hash = $3, report = $4 where id = $1', [
      id,
      bootId,
      hash,
      JSON.stringify(report),
    ]);
  }

  async list(tx: Tx): Promise<RouterRow[]> {
    return tx.query(
      `select ${columns} from routers r cross join installation i where r.forgotten_at is null order by r.name, r.id`,
      [this.asleepMs],
    );
  }

  /** What routers that were heard of within `liveMs` say they cannot serve, by deployment. */
  async problems(tx: Tx, liveMs: number): Promise<Map<string, string>> {
    const rows: { deployment: string; name: string; words: string }[] = await tx.query(
      `select p.key as deployment, r.name, p.value as words from routers r cross join installation i,
         jsonb_each_text(r.report -> 'problems') p
       where r.forgotten_at is null and ${quiet} < $2 * interval '1 millisecond'
       order by r.name desc`,
      [this.asleepMs, liveMs],
    );
    return new Map(rows.map(({ deployment, name, words }) => [deployment, `router ${name}: ${words}`]));
  }

  async forget(tx: Tx, id: string): Promise<boolean> {
    const [, count] = await tx.query('update routers set forgotten_at = now() where id = $1 and forgotten_at is null', [
      id,
    ]);
    return count === 1;
  }
}
