import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';
import type { CountSight, Grown, HistoryPlan } from './history.plan.ts';

/** Any fixed number: two looks at once would note the same counts twice. */
const lookLock = 7_137_302;

const numbers = (values: unknown[] | null): number[] => (values ?? []).map(Number);

// biome-ignore lint/suspicious/noExplicitAny: a row of the queries below
const toSight = (row: any): CountSight => ({
  router: row.router,
  endpoint: row.endpoint,
  version: row.version,
  bootId: row.bootId,
  requests: Number(row.requests),
  errors: Number(row.errors),
  latency: numbers(row.latency),
  mark: row.markBoot === null ? null : { bootId: row.markBoot, requests: Number(row.markRequests), errors: Number(row.markErrors), latency: numbers(row.markLatency) }, // biome-ignore format: one mark
});

const sights = (
  where: string,
) => `select s.router_id as router, s.endpoint, s.version, s.boot_id as "bootId", s.requests,
    s.errors, s.latency, m.boot_id as "markBoot", m.requests as "markRequests", m.errors as "markErrors",
    m.latency as "markLatency"
  from router_stats s left join traffic_marks m
    on m.router_id = s.router_id and m.endpoint = s.endpoint and m.version = s.version
  where ${where}`;

/** The only SQL for what endpoints were like over the last day, by hours. */
@Injectable()
export class TrafficHistoryStore {
  async lock(tx: Tx): Promise<void> {
    await tx.query('select pg_advisory_xact_lock($1)', [lookLock]);
  }

  /** The next endpoints by name whose traffic is progressive; null: never looked at before. */
  async watched(tx: Tx, after: string, most: number): Promise<{ endpoint: string; spanMs: number | null }[]> {
    const rows = await tx.query(
      `select t.endpoint, extract(epoch from now() - l.at) * 1000 as span from endpoint_traffic t
       left join traffic_looks l on l.endpoint = t.endpoint where t.endpoint > $1 order by t.endpoint limit $2`,
      [after, most],
    );
    // biome-ignore lint/suspicious/noExplicitAny: rows of the query above
    return rows.map(({ endpoint, span }: any) => ({ endpoint, spanMs: span === null ? null : Number(span) }));
  }

  /** Counts of these endpoints that changed since the last look. */
  async changed(tx: Tx, endpoints: readonly string[]): Promise<CountSight[]> {
    const rows = await tx.query(
      sights(`s.endpoint = any($1::text[]) and (m.router_id is null or m.boot_id <> s.boot_id or m.requests <> s.requests
        or m.errors <> s.errors or m.latency <> s.latency)`),
      [endpoints],
    );
    return rows.map(toSight);
  }

  /** Notes a look at these endpoints, one statement however many. */
  async note(tx: Tx, endpoints: readonly string[], { marks, hours, peaks }: HistoryPlan): Promise<void> {
    await tx.query(
      `with looks as (
         insert into traffic_looks (endpoint, at) select unnest($1::text[]), now()
         on conflict (endpoint) do update set at = now()),
       marks as (
         insert into traffic_marks (router_id, endpoint, version, boot_id, requests, errors, latency)
         select r.router, r.endpoint, r.version, r."bootId", r.requests, r.errors, ${arrayOf('r.latency')}
         from jsonb_to_recordset($2) as r(router uuid, endpoint text, version integer, "bootId" text, requests bigint, errors bigint, latency jsonb)
         on conflict (router_id, endpoint, version) do update set boot_id = excluded.boot_id,
           requests = excluded.requests, errors = excluded.errors, latency = excluded.latency),
       hours as (
         insert into traffic_hours as h (endpoint, version, hour, requests, errors, latency)
         select r.endpoint, r.version, date_trunc('hour', now()), r.requests, r.errors, ${arrayOf('r.latency')}
         from jsonb_to_recordset($3) as r(endpoint text, version integer, requests bigint, errors bigint, latency jsonb)
         on conflict (endpoint, version, hour) do update set requests = h.requests + excluded.requests,
           errors = h.errors + excluded.errors,
           latency = (select array_agg(coalesce(one, 0) + coalesce(other, 0) order by at)
             from unnest(h.latency, excluded.latency) with ordinality as u(one, other, at)))
       insert into traffic_peaks as p (endpoint, hour, per_minute)
       select r.endpoint, date_trunc('hour', now()), r."perMinute"
       from jsonb_to_recordset($4) as r(endpoint text, "perMinute" double precision)
       on conflict (endpoint, hour) do update set per_minute = greatest(p.per_minute, excluded.per_minute)`,
      [endpoints, JSON.stringify(marks), JSON.stringify(hours), JSON.stringify(peaks)],
    );
  }

  /** What was noted of an endpoint over the last day, and its newest counts with their marks. */
  async day(tx: Tx, endpoint: string) {
    const hours = await tx.query(
      `select endpoint, version, requests, errors, latency from traffic_hours
       where endpoint = $1 and hour >= date_trunc('hour', now() - interval '24 hours')`,
      [endpoint],
    );
    const [peak] = await tx.query(
      `select max(per_minute) as most, (select extract(epoch from now() - at) * 1000 from traffic_looks where endpoint = $1) as span
       from traffic_peaks where endpoint = $1 and hour >= date_trunc('hour', now() - interval '24 hours')`,
      [endpoint],
    );
    const current = await tx.query(sights('s.endpoint = $1'), [endpoint]);
    return {
      // biome-ignore lint/suspicious/noExplicitAny: rows of the queries above
      hours: hours.map((row: any): Grown => ({ ...row, requests: Number(row.requests), errors: Number(row.errors), latency: numbers(row.latency) })), // biome-ignore format: one row
      current: current.map(toSight) as CountSight[],
      peak: peak.most === null ? null : Number(peak.most),
      /** Since the last look; null: there was none. */
      spanMs: peak.span === null ? null : Number(peak.span),
    };
  }

  /** Requests that came in since the last look at an endpoint; null: nobody looked yet. */
  async recent(tx: Tx, endpoint: string): Promise<{ requests: number; spanMs: number } | null> {
    const [row] = await tx.query(
      `select extract(epoch from clock_timestamp() - l.at) * 1000 as span, (
         select coalesce(sum(s.requests - case when m.boot_id = s.boot_id and m.requests <= s.requests then m.requests else 0 end), 0)
         from router_stats s left join traffic_marks m
           on m.router_id = s.router_id and m.endpoint = s.endpoint and m.version = s.version
         where s.endpoint = l.endpoint) as requests
       from traffic_looks l where l.endpoint = $1`,
      [endpoint],
    );
    return row ? { requests: Number(row.requests), spanMs: Number(row.span) } : null;
  }

  /** What is older than the day before any rollout, and what was noted of endpoints that are not progressive any more. */
  async sweep(tx: Tx): Promise<void> {
    const gone = (table: string) =>
      tx.query(
        `delete from ${table} h where not exists (select 1 from endpoint_traffic t where t.endpoint = h.endpoint)`,
      );
    await tx.query(`delete from traffic_hours where hour < now() - interval '26 hours'`);
    await tx.query(`delete from traffic_peaks where hour < now() - interval '26 hours'`);
    await gone('traffic_marks');
    await gone('traffic_looks');
    await tx.query(
      `delete from traffic_marks m where not exists (select 1 from router_stats s
         where s.router_id = m.router_id and s.endpoint = m.endpoint and s.version = m.version)`,
    );
  }
}

const arrayOf = (column: string) => `array(select x::bigint from jsonb_array_elements_text(${column}) x)`;
