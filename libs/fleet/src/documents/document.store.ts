import { Injectable } from '@nestjs/common';
import { type CounterMetric, Metrics } from '@perch/platform';
import type { Tx } from '@perch/platform/database';
import { type Entry, type Head, type History, patchReach, rememberedRevisions } from './document.plan.ts';

/** Notified with a document's id when it has a new revision, or `*` for all. */
export const documentChannel = 'perch_document';

export const routingTableDocument = 'routing-table';
export const serverDocument = (serverId: string): string => `server/${serverId}`;

/** $1: the document, $2: a revision, $3: how far to count. */
const behindSql = `select count(*)::int as behind from (
  select 1 from document_revisions where document_id = $1 and revision > $2 limit $3) later`;

/** Old revisions and removed members are swept with every so manieth publication: they cost nothing but room. */
const sweepEvery = 16;

/** A document with its members as JSON text, by section; nothing here is parsed that is only passed on. */
export interface DocumentText {
  head: Head;
  behind: number;
  sections: Record<string, string>;
}

/** Published documents: head, members, revisions. The only SQL for them. */
@Injectable()
export class DocumentStore {
  private readonly published: CounterMetric<'document'>;
  private readonly publications = new Map<string, number>();

  constructor(metrics: Metrics) {
    this.published = metrics.counter('perch_documents_published_total', 'Revisions of documents published.', [
      'document',
    ]);
  }

  /** Locks the document (made when missing) until the transaction ends; whoever reads a snapshot to publish does this first. */
  async lock(tx: Tx, id: string): Promise<number> {
    const select = 'select revision from documents where id = $1 for update';
    const [row] = await tx.query(select, [id]);
    if (row) return Number(row.revision);
    await tx.query('insert into documents (id) values ($1) on conflict do nothing', [id]);
    const [made] = await tx.query(select, [id]);
    return Number(made.revision);
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
   * Writes the changes under the next revision and answers it, in one statement. Revisions grow with the clock (seconds),
   * so that a database that was set back in time never gives a number again that somebody may still hold.
   */
  async publish(tx: Tx, id: string, changes: readonly Entry[]): Promise<number> {
    const rows = changes.map(({ section, key, value, digest, unmeant }) => ({ section, key, value, digest, unmeant }));
    const [row] = await tx.query(
      `with changed as (
         select section, key, nullif(value, 'null'::jsonb) as value, digest,
           array(select jsonb_array_elements_text(unmeant)) as unmeant
         from jsonb_to_recordset($2) as r(section text, key text, value jsonb, digest text, unmeant jsonb)),
       head as (
         update documents set revision = greatest(revision + 1, extract(epoch from clock_timestamp())::bigint),
           published_at = now(), confirmed = not exists (select 1 from changed where unmeant <> '{}')
             and not exists (select 1 from document_entries e where e.document_id = $1 and e.unmeant <> '{}'
               and not exists (select 1 from changed c where c.section = e.section and c.key = e.key))
         where id = $1 returning revision),
       written as (
         insert into document_entries (document_id, section, key, value, digest, revision, unmeant)
         select $1, section, key, value, digest, revision, unmeant from changed, head
         on conflict (document_id, section, key) do update set
           value = excluded.value, digest = excluded.digest, revision = excluded.revision, unmeant = excluded.unmeant),
       remembered as (insert into document_revisions (document_id, revision) select $1, revision from head)
       select revision, pg_notify('${documentChannel}', $1) from head`,
      [id, JSON.stringify(rows)],
    );
    const count = (this.publications.get(id) ?? 0) + 1;
    this.publications.set(id, count);
    if (count % sweepEvery === 0) await this.sweep(tx, id);
    this.published.add({ document: id.split('/')[0]! });
    return Number(row.revision);
  }

  private async sweep(tx: Tx, id: string): Promise<void> {
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

  /** What is known of the document, seen from revision `after`. */
  async history(tx: Tx, id: string, after: number | null): Promise<History> {
    const [row] = await tx.query(
      `select i.lineage, i.past_lineages, i.confirmed and coalesce(d.confirmed, true) as confirmed,
         coalesce(d.revision, 0) as revision, r.oldest, r.holds, b.behind
       from installation i left join documents d on d.id = $1
       cross join lateral (select min(revision) as oldest, exists (
         select 1 from document_revisions where document_id = $1 and revision = $2) as holds
         from document_revisions where document_id = $1) r
       cross join lateral (${behindSql}) b`,
      [id, after, patchReach + 1],
    );
    const head: Head = { lineage: row.lineage, revision: Number(row.revision), confirmed: row.confirmed };
    const oldest = row.oldest === null ? null : Number(row.oldest);
    return { head, pastLineages: row.past_lineages, oldest, holds: row.holds, behind: row.behind };
  }

  /**
   * Head and members of one moment, in one statement: those changed after `after` (removed ones null), or all that stand
   * when `after` is null. Postgres writes the members as JSON texts.
   */
  async text(tx: Tx, id: string, after: number | null): Promise<DocumentText> {
    const which = after === null ? 'e.digest is not null and $2::bigint is null' : 'e.revision > $2';
    const rows: (Omit<Head, 'revision'> & {
      revision: string;
      behind: number;
      section: string | null;
      members: string;
    })[] = await tx.query(
      `select i.lineage, i.confirmed and d.confirmed as confirmed, d.revision, b.behind, m.section, m.members
         from installation i join documents d on d.id = $1
         cross join lateral (${behindSql}) b
         left join (
           select e.section, '{' || string_agg(to_json(e.key)::text || ':' || coalesce(e.value::text, 'null'), ',') || '}' as members
           from document_entries e where e.document_id = $1 and ${which} group by e.section) m on true`,
      [id, after, patchReach + 1],
    );
    const { lineage, confirmed, revision, behind } = rows[0]!;
    const sections = Object.fromEntries(rows.flatMap(({ section, members }) => (section ? [[section, members]] : [])));
    return { head: { lineage, confirmed, revision: Number(revision) }, behind, sections };
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

  /** Endpoints whose deployments these are, as far as the table holds them: also of those that no server holds. */
  async endpointsOf(tx: Tx, deployments: readonly string[]): Promise<string[]> {
    if (deployments.length === 0) return [];
    const rows: { endpoint: string }[] = await tx.query(
      `select distinct coalesce(t ->> 'endpoint', e.key) as endpoint
       from document_entries e, jsonb_path_query(e.value, '$.targets[*]') t
       where e.document_id = $1 and e.section = 'endpoints' and e.digest is not null and t ->> 'deployment' = any($2)`,
      [routingTableDocument, deployments],
    );
    return rows.map(({ endpoint }) => endpoint);
  }

  /** The revision that last changed a name of the table, and which of these deployments any name of it still holds. */
  async routedSince(
    tx: Tx,
    endpoint: string,
    deployments: readonly string[],
  ): Promise<{ since: number | null; held: Set<string> }> {
    const [entry]: { revision: string }[] = await tx.query(
      `select revision from document_entries where document_id = $1 and section = 'endpoints' and key = $2`,
      [routingTableDocument, endpoint],
    );
    const rows: { deployment: string }[] = await tx.query(
      `select distinct t ->> 'deployment' as deployment from document_entries e, jsonb_path_query(e.value, '$.targets[*]') t
       where e.document_id = $1 and e.section = 'endpoints' and e.digest is not null and t ->> 'deployment' = any($2)`,
      [routingTableDocument, deployments],
    );
    return { since: entry ? Number(entry.revision) : null, held: new Set(rows.map(({ deployment }) => deployment)) };
  }

  /** Every document gets a new revision, so that all followers are told of a new head. */
  async republishAll(tx: Tx): Promise<void> {
    await tx.query(
      `with heads as (
         update documents set revision = greatest(revision + 1, extract(epoch from clock_timestamp())::bigint)
         where revision > 0 returning id, revision)
       insert into document_revisions (document_id, revision) select id, revision from heads`,
    );
    await tx.query('select pg_notify($1, $2)', [documentChannel, '*']);
  }
}
