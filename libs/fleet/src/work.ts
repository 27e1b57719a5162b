/** Kinds of work that the fleet asks for. Keys: an endpoint's name, a pool's name, a server's id, `all`. */
export const work = {
  endpoint: 'endpoint',
  pool: 'pool',
  server: 'server',
  routingTable: 'routing-table',
  sweep: 'fleet-sweep',
  /** Tritons without an agent, looked at by the control plane itself. Keys: a server's id. */
  external: 'external',
  /** What such a server holds has changed: endpoints that are served from it. Keys: a server's id. */
  source: 'source',
} as const;
export const theOnlyKey = 'all';
