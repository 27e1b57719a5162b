/** Kinds of work that the fleet asks for. Keys: an endpoint's name, a pool's name, a server's id, `all`. */
export const work = {
  endpoint: 'endpoint',
  pool: 'pool',
  server: 'server',
  routingTable: 'routing-table',
  sweep: 'fleet-sweep',
} as const;
export const theOnlyKey = 'all';
