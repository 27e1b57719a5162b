import { Injectable } from '@nestjs/common';
import type { ChangeEvent, WebhookEvent } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { toldTypes, wantedTypes } from './webhook.decide.ts';

export interface WebhookRow {
  id: string;
  name: string;
  url: string;
  events: WebhookEvent[];
  secret: string;
  createdAt: string;
  createdBy: string;
  beginsAfter: number;
  doneTo: number;
  tries: number;
  failures: number;
  nextTryAt: string | null;
  /** Until then, by the database's clock; 0: it is due. */
  waitMs: number;
  lastError: string | null;
  givenUp: number;
  lastGivenUp: string | null;
}
type NewWebhook = Pick<WebhookRow, 'name' | 'url' | 'events' | 'secret' | 'createdBy'>;
export type DueEvent = ChangeEvent & { ageMs: number };

const time = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const columns = `id, name, url, events, secret, ${time('created_at')} as "createdAt", created_by as "createdBy",
  begins_after::int as "beginsAfter", done_to::int as "doneTo", tries, failures, ${time('next_try_at')} as "nextTryAt",
  greatest(0, coalesce(extract(epoch from next_try_at - now()) * 1000, 0))::int as "waitMs", last_error as "lastError",
  given_up as "givenUp", last_given_up as "lastGivenUp"`;
/** Written out, so that the partial index is taken. */
const told = `o.type in (${toldTypes.map((type) => `'${type}'`).join(', ')})`;

/** The only SQL for webhooks, and what they read of the outbox. */
@Injectable()
export class WebhookStore {
  /** Begins after the newest event there is; undefined: the name is taken. */
  async insert(tx: Tx, hook: NewWebhook): Promise<WebhookRow | undefined> {
    const rows: WebhookRow[] = await tx.query(
      `insert into webhooks (name, url, events, types, secret, created_by, begins_after, done_to)
       select $1, $2, $3, $4, $5, $6, position, position from ledger_heads where ledger = 'outbox'
       on conflict (name) do nothing returning ${columns}`,
      [hook.name, hook.url, hook.events, wantedTypes(hook.events), hook.secret, hook.createdBy],
    );
    return rows[0];
  }

  async find(tx: Tx, name: string): Promise<WebhookRow | undefined> {
    const rows: WebhookRow[] = await tx.query(`select ${columns} from webhooks where name = $1`, [name]);
    return rows[0];
  }

  list(tx: Tx, after: string | undefined, limit: number): Promise<WebhookRow[]> {
    return tx.query(`select ${columns} from webhooks where name > $1 order by name limit $2`, [after ?? '', limit]);
  }

  async remove(tx: Tx, name: string): Promise<boolean> {
    const [, count] = await tx.query('delete from webhooks where name = $1', [name]);
    return count === 1;
  }

  /** Events that a webhook wants and that were neither delivered nor given up. */
  async pending(tx: Tx, { events, doneTo }: Pick<WebhookRow, 'events' | 'doneTo'>): Promise<number> {
    const [row] = await tx.query(
      `select count(*)::int as count from outbox o where ${told} and o.type = any($1) and o.id > $2`,
      [wantedTypes(events), doneTo],
    );
    return row.count;
  }

  /** The oldest of them. */
  async nextEvent(tx: Tx, { events, doneTo }: Pick<WebhookRow, 'events' | 'doneTo'>): Promise<DueEvent | undefined> {
    const rows: DueEvent[] = await tx.query(
      `select o.id::int, o.type, o.subject, ${time('o.at')} as at, o.data,
         (extract(epoch from now() - o.at) * 1000)::float8 as "ageMs"
       from outbox o where ${told} and o.type = any($1) and o.id > $2 order by o.id limit 1`,
      [wantedTypes(events), doneTo],
    );
    return rows[0];
  }

  /** Names of webhooks for which an event is waiting. */
  async behind(tx: Tx): Promise<string[]> {
    const rows: { name: string }[] = await tx.query(
      `select w.name from webhooks w where exists (select 1 from outbox o where ${told} and o.id > w.done_to
         and (w.events = '{}' or o.type = any(w.types)))`,
    );
    return rows.map(({ name }) => name);
  }

  /** Each only if nobody else went on meanwhile: whoever sends at the same time sends the same event, and one of them counts it. */
  async delivered(tx: Tx, { id, doneTo }: WebhookRow, event: number): Promise<void> {
    await tx.query(
      `update webhooks set done_to = $3, tries = 0, failures = 0, next_try_at = null, last_error = null
       where id = $1 and done_to = $2`,
      [id, doneTo, event],
    );
  }

  async failed(tx: Tx, { id, doneTo, tries }: WebhookRow, error: string, waitMs: number): Promise<void> {
    await tx.query(
      `update webhooks set tries = tries + 1, failures = failures + 1, last_error = $4,
         next_try_at = now() + $5 * interval '1 millisecond'
       where id = $1 and done_to = $2 and tries = $3`,
      [id, doneTo, tries, error, waitMs],
    );
  }

  async gaveUp(
    tx: Tx,
    { id, doneTo }: WebhookRow,
    event: number,
    { error, words, waitMs }: { error: string; words: string; waitMs: number },
  ): Promise<void> {
    await tx.query(
      `update webhooks set done_to = $3, tries = 0, failures = failures + 1, last_error = $4,
         next_try_at = now() + $6 * interval '1 millisecond', given_up = given_up + 1, last_given_up = $5
       where id = $1 and done_to = $2`,
      [id, doneTo, event, error, words, waitMs],
    );
  }
}
