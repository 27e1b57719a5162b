import type { Garbage } from '@perch/contracts';
import type { Tx } from './transactions.ts';

/** Rows of one kind that nobody needs any more. All parts are SQL of ours, never of a caller; `$1` is the time before which. */
export interface GarbageRule {
  kind: string;
  what: string;
  /** Table with an alias: `deployments d`. */
  table: string;
  /** Which rows are garbage; `$1` must stand in it. */
  where: string;
  /** What a row is called for people. */
  name: string;
  sizeBytes?: string;
}

const mostExamples = 20;

/** Finds rows of one kind, and deletes them unless `dryRun`: one statement, so what is told is what went. */
export async function collectRows(
  tx: Tx,
  { kind, what, table, where, name, sizeBytes = 'pg_column_size(%)' }: GarbageRule,
  before: Date,
  dryRun: boolean,
): Promise<Garbage> {
  const alias = table.split(' ').at(-1)!;
  const columns = `(${name})::text as name, (${sizeBytes.replace('%', `${alias}.*`)})::bigint as size`;
  const rows = dryRun
    ? `select ${columns} from ${table} where ${where}`
    : `delete from ${table} where ${where} returning ${columns}`;
  const [sum] = await tx.query(
    `with gone as (${rows}) select count(*)::integer as count, coalesce(sum(size), 0)::bigint as size,
       coalesce((array_agg(name order by size desc, name))[1:${mostExamples}], '{}') as examples from gone`,
    [before],
  );
  return { kind, what, count: sum.count, sizeBytes: Number(sum.size), examples: sum.examples, failed: null };
}
