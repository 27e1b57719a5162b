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

/**
 * The client that a pool makes. A connection cut between two owners (the pool, a query runner) tells nobody, and an
 * error that nobody hears ends the process: whoever waits for a query is told by that query, and the pool drops the
 * client by itself. Each statement is counted in `counts`.
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
      return (super.query as (...all: unknown[]) => unknown)(...given);
    }
  };
