import { Injectable } from '@nestjs/common';
import type { ArmStats, VersionCount } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';

export type ReportedStats = Record<string, Record<string, ArmStats>>;

/** The only SQL for what routers counted: the newest cumulative figures of each (router, endpoint, version). */
@Injectable()
export class RouterStatsStore {
  /** Replaces the rows named; of an earlier boot, all others of the router go. One statement, however many rows. */
  async save(tx: Tx, router: string, bootId: string, stats: ReportedStats): Promise<void> {
    const rows = Object.entries(stats).flatMap(([endpoint, versions]) =>
      Object.entries(versions).map(([version, counts]) => ({ endpoint, version: Number(version), ...counts })),
    );
    await tx.query(
      `with earlier as (delete from router_stats where router_id = $1 and boot_id <> $2
         and (endpoint, version) not in (select r.endpoint, r.version from jsonb_to_recordset($3) as r(endpoint text, version integer)))
       insert into router_stats (router_id, boot_id, endpoint, version, requests, errors, retries, latency)
       select $1, $2, r.endpoint, r.version, r.requests, r.errors, r.retries,
         array(select x::bigint from jsonb_array_elements_text(r.latency) x)
       from jsonb_to_recordset($3) as r(endpoint text, version integer, requests bigint, errors bigint, retries bigint, latency jsonb)
       on conflict (router_id, endpoint, version) do update set boot_id = excluded.boot_id, requests = excluded.requests,
         errors = excluded.errors, retries = excluded.retries, latency = excluded.latency, at = now()`,
      [router, bootId, JSON.stringify(rows)],
    );
  }

  /** Of routers that were not forgotten, newest version first; `now`: the database's clock. */
  async ofEndpoint(tx: Tx, endpoint: string): Promise<{ now: string; counts: VersionCount[] }> {
    const rows = await tx.query(
      `select s.version, s.router_id as router, r.name as "routerName", s.boot_id as "bootId", s.at, s.requests, s.errors,
         s.retries, s.latency from router_stats s join routers r on r.id = s.router_id
       where s.endpoint = $1 and r.forgotten_at is null order by s.version desc, r.name, s.router_id`,
      [endpoint],
    );
    const [clock] = await tx.query('select now()');
    return { now: clock.now.toISOString(), counts: rows.map(toCount) };
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a row of the query above
const toCount = (row: any): VersionCount => ({
  ...row,
  at: row.at.toISOString(),
  requests: Number(row.requests),
  errors: Number(row.errors),
  retries: Number(row.retries),
  latency: row.latency.map(Number),
});
