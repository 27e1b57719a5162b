import type { Server } from '@perch/contracts';

/** Begins the reason of every drain that a roll asked for, so that the next run finds them. */
export const rollReason = 'perch fleet roll';

export interface RollPlan {
  /** In the order in which they are taken: first what an earlier run left out of service. */
  todo: Server[];
  /** Not touched, with the reason. */
  skipped: { server: Server; why: string }[];
}

const isOurs = ({ drain }: Server): boolean => drain?.reason.startsWith(rollReason) ?? false;

/** Which servers of a pool a roll takes. `done`: ids of those that an earlier run of it has finished. */
export function planRoll(servers: readonly Server[], done: ReadonlySet<string>): RollPlan {
  const plan: RollPlan = { todo: [], skipped: [] };
  for (const server of [...servers].sort((a, b) => Number(isOurs(b)) - Number(isOurs(a)) || byName(a, b))) {
    if (done.has(server.id) && !server.drain) plan.skipped.push({ server, why: 'done before' });
    else if (isOurs(server)) plan.todo.push(server);
    else if (server.drain) plan.skipped.push({ server, why: `drained by ${server.drain.by}` });
    else if (!server.live) plan.skipped.push({ server, why: 'it does not report' });
    else plan.todo.push(server);
  }
  return plan;
}

const byName = (a: Server, b: Server) => (`${a.name} ${a.id}` < `${b.name} ${b.id}` ? -1 : 1);

/** What tells one start of a server from the next: its agent's, and that of the model server which the agent supervises. */
export const bootOf = ({ bootId, observed }: Server): string =>
  `${bootId ?? ''} ${observed?.supervision?.restarts ?? ''}`;

/** Why it cannot serve yet; undefined: it can. */
export function notBack({ live, observed, desiredRevision }: Server): string | undefined {
  if (!live || !observed) return 'it does not report';
  if (!observed.triton.live) return 'its model server does not answer';
  if (!observed.triton.ready) return 'its model server is not ready';
  if (observed.revision < desiredRevision) return 'its agent has not taken its document';
  return undefined;
}
