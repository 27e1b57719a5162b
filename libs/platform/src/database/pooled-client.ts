import { createHash } from 'node:crypto';
import pg from 'pg';

/** Statements sent, by their first word. */
export type QueryCounts = Map<string, number>;

const words = new Set(['select', 'insert', 'update', 'delete', 'with', 'commit', 'rollback', 'set']);

/** First word of a statement, from a short list: it becomes a metric's label. */
export function statementWord(statement: unknown): string {
  const text = typeof statement === 'string' ? statement : ((statement as { text?: unknown } | null)?.text ?? '');
  const word = /^\s*(\w+)/.exec(String(text).slice(0, 200))?.[1]?.toLowerCase() ?? '';
  if (word === 'start' || word === 'begin') return 'begin';
  return words.has(word) ? word : 'other';
}

/** More texts than this are not our own few hundred statements, but made up anew each time (lists of a query builder). */
const mostNamed = 500;
const names = new Map<string, string>();

function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined || names.size >= mostNamed) return known;
  const name = `perch_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
  names.set(text, name);
  return name;
}

/** Postgres: a statement that was prepared before the schema changed now answers something else. */
const stalePlan = '0A000';

/**
 * The client that a pool makes. A connection cut between two owners (the pool, a query runner) tells nobody, and an
 * error that nobody hears ends the process: whoever waits for a query is told by that query, and the pool drops the
 * client by itself. Statements with values are prepared once a connection, so that Postgres does not plan them each time
 * (about a third of its work here); a connection whose plans went stale is given up. Each statement is counted.
 */
export const pooledClient = (counts: QueryCounts): typeof pg.Client =>
  class PooledClient extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      this.on('error', () => undefined);
    }

    // biome-ignore lint/suspicious/noExplicitAny: the many forms of `query` pass through as they are
    override query(...given: any[]): any {
      const word = statementWord(given[0]);
      counts.set(word, (counts.get(word) ?? 0) + 1);
      const answer = (super.query as (...all: unknown[]) => unknown)(...prepared(given));
      if (answer instanceof Promise)
        answer.catch((error: { code?: string }) => {
          if (error?.code === stalePlan) void this.end().catch(() => undefined);
        });
      return answer;
    }
  };

function prepared(given: unknown[]): unknown[] {
  const [text, values, ...rest] = given;
  if (typeof text !== 'string' || !Array.isArray(values) || values.length === 0) return given;
  const name = nameOf(text);
  return name === undefined ? given : [{ name, text, values }, ...rest];
}
