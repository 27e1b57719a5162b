import { Injectable } from '@nestjs/common';
import type { RolloutEvent } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { NewRolloutEvent, RolloutRecord } from './rollout.entity.ts';

export interface StoredRolloutEvent extends RolloutEvent {
  input: NewRolloutEvent['input'];
}

/** So many that go on. */
export interface RolloutCount {
  state: RolloutRecord['state'];
  run: RolloutRecord['run'];
  count: number;
}

const plain = [
  'endpoint', 'state', 'run', 'reason', 'salt', 'epoch', 'share', 'restarts', 'fallbacks',
] as const; // biome-ignore format: one row reads better
const json = ['stable', 'candidate', 'policy', 'epochs', 'baseline', 'queued', 'decision', 'pairs'] as const;

/** Columns by field of a record, beside `id` and `row_version`. */
const columns: Record<Exclude<keyof RolloutRecord, 'id' | 'rowVersion'>, string> = {
  ...(Object.fromEntries([...plain, ...json].map((name) => [name, name])) as Record<
    (typeof plain)[number] | (typeof json)[number],
    string
  >),
  heldBy: 'held_by',
  stickyHeader: 'sticky_header',
  byHand: 'by_hand',
  allowBreaking: 'allow_breaking',
  wishSeen: 'wish_seen',
  decidedAt: 'decided_at',
  startedAt: 'started_at',
  startedBy: 'started_by',
  stepAt: 'step_at',
  verifyingSince: 'verifying_since',
  patienceSince: 'patience_since',
  endedAt: 'ended_at',
  endedAs: 'ended_as',
  keepUntil: 'keep_until',
};
const fields = Object.keys(columns) as (keyof typeof columns)[];
const isJson = new Set<string>(json);
const selected = `id, row_version as "rowVersion", ${fields.map((field) => `${columns[field]} as "${field}"`).join(', ')}`;

const valuesOf = (record: RolloutRecord): unknown[] =>
  fields.map((field) => (isJson.has(field) && record[field] !== null ? JSON.stringify(record[field]) : record[field]));

/** The only SQL for rollouts and their events. Writers hold the traffic row of the endpoint. */
@Injectable()
export class RolloutStore {
  /** The database's clock, which all control planes share. */
  async now(tx: Tx): Promise<Date> {
    const [row] = await tx.query('select clock_timestamp() as now');
    return row.now;
  }

  /** The one that goes on. */
  async active(tx: Tx, endpoint: string): Promise<RolloutRecord | null> {
    return one(tx, 'endpoint = $1 and ended_at is null', [endpoint]);
  }

  /** The one that ended last. */
  async last(tx: Tx, endpoint: string): Promise<RolloutRecord | null> {
    return one(tx, 'endpoint = $1 and ended_at is not null order by ended_at desc limit 1', [endpoint]);
  }

  /** The newest promoted one whose old version is kept still at `now`. */
  async kept(tx: Tx, endpoint: string, now: Date): Promise<RolloutRecord | null> {
    return one(tx, 'endpoint = $1 and keep_until > $2 order by ended_at desc limit 1', [endpoint, now]);
  }

  async get(tx: Tx, id: string): Promise<RolloutRecord | null> {
    return one(tx, 'id::text = $1', [id]);
  }

  /** Newest first, from after rollout `after`. */
  async list(
    tx: Tx,
    query: { endpoint: string | null; active: boolean | null; after: string | null; limit: number },
  ): Promise<RolloutRecord[]> {
    const rows = await tx.query(
      `select ${selected} from rollouts r
       where ($1::text is null or endpoint = $1) and ($2::boolean is null or (ended_at is null) = $2)
         and ($3::text is null or (started_at, id) < (select a.started_at, a.id from rollouts a where a.id::text = $3))
       order by started_at desc, id desc limit $4`,
      [query.endpoint, query.active, query.after, query.limit],
    );
    return rows.map(toRecord);
  }

  /** Endpoints with a rollout that goes on, from after `after`. */
  async someActive(tx: Tx, after: string, most: number): Promise<string[]> {
    const rows: { endpoint: string }[] = await tx.query(
      'select endpoint from rollouts where ended_at is null and endpoint > $1 order by endpoint limit $2',
      [after, most],
    );
    return rows.map(({ endpoint }) => endpoint);
  }

  /** Those that go on, by state and run. */
  async census(tx: Tx): Promise<RolloutCount[]> {
    return tx.query('select state, run, count(*)::int from rollouts where ended_at is null group by state, run');
  }

  async insert(tx: Tx, record: RolloutRecord): Promise<void> {
    const places = fields.map((_, at) => `$${at + 2}`);
    await tx.query(
      `insert into rollouts (id, ${fields.map((field) => columns[field]).join(', ')}) values ($1, ${places.join(', ')})`,
      [record.id, ...valuesOf(record)],
    );
  }

  /** False: somebody wrote it since it was read. */
  async update(tx: Tx, record: RolloutRecord): Promise<boolean> {
    const sets = fields.map((field, at) => `${columns[field]} = $${at + 3}`);
    const [, count] = await tx.query(
      `update rollouts set row_version = row_version + 1, ${sets.join(', ')} where id = $1 and row_version = $2`,
      [record.id, record.rowVersion, ...valuesOf(record)],
    );
    return count === 1;
  }

  async addEvent(tx: Tx, rollout: string, at: Date, event: NewRolloutEvent): Promise<void> {
    await tx.query(
      `insert into rollout_events (rollout_id, at, type, actor, message, decision, input) values ($1, $2, $3, $4, $5, $6, $7)`,
      [rollout, at, event.type, event.actor, event.message, text(event.decision), text(event.input)],
    );
  }

  /** Oldest first, above event `after`. */
  async events(tx: Tx, rollout: string, after: number, limit: number): Promise<StoredRolloutEvent[]> {
    const rows = await tx.query(
      `select ${eventColumns} from rollout_events where rollout_id::text = $1 and id > $2 order by id limit $3`,
      [rollout, after, limit],
    );
    return rows.map(toEvent);
  }

  /** Event `id` of the rollout; null: the newest one that was decided by evidence. */
  async decisive(tx: Tx, rollout: string, id: number | null): Promise<StoredRolloutEvent | null> {
    const [row] = await tx.query(
      `select ${eventColumns} from rollout_events where rollout_id::text = $1
         and ($2::bigint is null and input is not null or id = $2) order by id desc limit 1`,
      [rollout, id],
    );
    return row ? toEvent(row) : null;
  }
}

const eventColumns = 'id::int, rollout_id as rollout, at, type, actor, message, decision, input';
const text = (value: unknown) => (value === null ? null : JSON.stringify(value));

async function one(tx: Tx, where: string, values: unknown[]): Promise<RolloutRecord | null> {
  const [row] = await tx.query(`select ${selected} from rollouts where ${where}`, values);
  return row ? toRecord(row) : null;
}

const toRecord = (row: RolloutRecord): RolloutRecord => ({
  ...row,
  epochs: row.epochs.map((epoch) => ({ ...epoch, since: new Date(epoch.since) })),
});
const toEvent = (row: Omit<StoredRolloutEvent, 'at'> & { at: Date }): StoredRolloutEvent => ({
  ...row,
  at: row.at.toISOString(),
});
