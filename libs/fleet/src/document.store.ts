import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';
import { type Entry, type Head, type History, patchReach, rememberedRevisions } from './document.plan.ts';

/** Notified with a document's id when it has a new revision, or `*` for all. */
export const documentChannel = 'perch_document';

export const routingTableDocument = 'routing-table';
export const serverDocument = (serverId: string): string => `server/${serverId}`;

/** Published documents: head, members, revisions. The only SQL for them. */
@Injectable()
export class DocumentStore {
  /** Locks the document (made when missing) until the transaction ends; whoever reads a snapshot to publish does this first. */
  async lock(tx: Tx, id: string): Promise<number> {
    await tx.query('insert into documents (id) values ($1) on conflict do nothing', [id]);
    const [row] = await tx.query('select revision from documents where id = $1 for update', [id]);
    return Number(row.revision);
  }

  /** Members of a section that stand, and removed ones that nobody decided; without their values. */
  async entries(tx: Tx, id: string, section: string): Promise<Entry[]> {
    return tx.query(
      `select section, key, null as value, digest, unmeant from document_entries
       where document_id = $1 and section = $2 and (digest is not null or unmeant <> '{}')`,
      [id, section],
    );
  }

  /** The named members of a section, and those of it that lost something nobody decided. */
  async entriesOf(tx: Tx, id: string, section: string, keys: readonly string[]): Promise<Entry[]> {
    return tx.query(
      `select section, key, value, digest, unmeant from document_entries
       where document_id = $1 and section = $2 and (key = any($3) or unmeant <> '{}')`,
      [id, section, keys],
    );
  }

  /**
   * Writes the changes under the next revision and answers it. Revisions grow with the clock (seconds), so that a
   * database that was set back in time never gives a number again that somebody may still hold.
   */
  async publish(tx: Tx, id: string, changes: readonly Entry[]): Promise<number> {
    const [row] = await tx
      .query(
        `update documents set revision = greatest(revision + 1, extract(epoch from clock_timestamp())::bigint), published_at = now()
       where id = $1 returning revision`,
        [id],
      )
      .then(([rows]) => rows);
    const revision = Number(row.revision);
    await this.write(tx, id, revision, changes);
    await tx.query(
      `update documents set confirmed = not exists (
         select 1 from document_entries where document_id = $1 and unmeant <> '{}') where id = $1`,
      [id],
    );
    await this.remember(tx, id, revision);
    await tx.query('select pg_notify($1, $2)', [documentChannel, id]);
    return revision;
  }

  private async write(tx: Tx, id: string, revision: number, changes: readonly Entry[]): Promise<void> {
    if (changes.length === 0) return;
    const rows = changes.map(({ section, key, value, digest, unmeant }) => ({ section, key, value, digest, unmeant }));
    await tx.query(
      `insert into document_entries (document_id, section, key, value, digest, revision, unmeant)
       select $1, section, key, nullif(value, 'null'::jsonb), digest, $2, array(select jsonb_array_elements_text(unmeant))
       from jsonb_to_recordset($3) as r(section text, key text, value jsonb, digest text, unmeant jsonb)
       on conflict (document_id, section, key) do update set
         value = excluded.value, digest = excluded.digest, revision = excluded.revision, unmeant = excluded.unmeant`,
      [id, revision, JSON.stringify(rows)],
    );
  }

  private async remember(tx: Tx, id: string, revision: number): Promise<void> {
    await tx.query('insert into document_revisions (document_id, revision) values ($1, $2)', [id, revision]);
    await tx.query(
      `delete from document_revisions where document_id = $1 and revision < (
         select revision from document_revisions where document_id = $1 order by revision desc offset $2 limit 1)`,
      [id, rememberedRevisions],
    );
    await tx.query(
      `delete from document_entries where document_id = $1 and digest is null and unmeant = '{}' and revision < (
         select revision from document_revisions where document_id = $1 order by revision desc offset $2 limit 1)`,
      [id, patchReach + 1],
    );
  }

  async history(tx: Tx, id: string): Promise<History> {
    const [row] = await tx.query(
      `select i.lineage, i.past_lineages, i.confirmed and coalesce(d.confirmed, true) as confirmed,
         coalesce(d.revision, 0) as revision,
         array(select revision from document_revisions where document_id = $1 order by revision) as revisions
       from installation i left join documents d on d.id = $1`,
      [id],
    );
    const head: Head = { lineage: row.lineage, revision: Number(row.revision), confirmed: row.confirmed };
    return { head, pastLineages: row.past_lineages, revisions: row.revisions.map(Number) };
  }

  /** Members changed after `after` (removed ones with value null), or all that stand when `after` is null. */
  async members(tx: Tx, id: string, after: number | null): Promise<Pick<Entry, 'section' | 'key' | 'value'>[]> {
    return after === null
      ? tx.query('select section, key, value from document_entries where document_id = $1 and digest is not null', [id])
      : tx.query('select section, key, value from document_entries where document_id = $1 and revision > $2', [
          id,
          after,
        ]);
  }

  /** Which of `hashes` stand at the JSON path in any member of the document. */
  async hashesIn(tx: Tx, id: string, path: string, hashes: readonly string[]): Promise<Set<string>> {
    const rows: { hash: string }[] = await tx.query(
      `select distinct h #>> '{}' as hash from document_entries e, jsonb_path_query(e.value, $2::jsonpath) h
       where e.document_id = $1 and e.digest is not null and h #>> '{}' = any($3)`,
      [id, path, hashes],
    );
    return new Set(rows.map((row) => row.hash));
  }

  /** Every document gets a new revision, so that all followers are told of a new head. */
  async republishAll(tx: Tx): Promise<void> {
    const rows = await tx
      .query(
        `update documents set revision = greatest(revision + 1, extract(epoch from clock_timestamp())::bigint)
         where revision > 0 returning id, revision`,
      )
      .then(([updated]) => updated as { id: string; revision: string }[]);
    for (const { id, revision } of rows) await this.remember(tx, id, Number(revision));
    await tx.query('select pg_notify($1, $2)', [documentChannel, '*']);
  }
}
