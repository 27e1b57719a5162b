import { spawn } from 'node:child_process';
import { AppError, type Server, type ServerDetail } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { parseDuration } from '../duration.ts';
import type { Invocation } from '../invocation.ts';
import { said } from '../output.ts';
import { bootOf, notBack, planRoll, rollReason } from '../roll.plan.ts';
import { RollStore } from '../roll.store.ts';
import type { Run } from '../verb.ts';
import { waitUntil } from '../wait.ts';
import { serverPath, waitDrained } from './fleet-drain.ts';

interface Roll {
  invocation: Invocation;
  client: AdminClient;
  store: RollStore;
  exec: string | undefined;
  reason: string;
  limitMs: number;
}

/**
 * Restarts the servers of a pool, so many at a time: out of service, the hook (or a restart by somebody else), ready
 * again, back in service. Stopped half-way, the same command goes on where it was.
 */
export const roll: Run = async (invocation, [pool], { exec, maxUnavailable = '1', wait = '10m', reason = '' }) => {
  const client = await invocation.admin();
  const atOnce = Number(maxUnavailable);
  if (!Number.isInteger(atOnce) || atOnce < 1)
    throw new AppError('invalid', `--max-unavailable: wants a number of servers from 1 on, got "${maxUnavailable}"`);
  const limitMs = parseDuration(wait, '--wait');
  const servers = (await client.list<Server>('/servers')).filter((server) => server.pool === pool);
  if (servers.length === 0)
    throw new AppError('not_found', `no server is in pool ${pool}; perch fleet pools shows them`);
  const store = new RollStore(invocation.settings.configDir, `${client.target.url} ${pool}`);
  const { todo, skipped } = planRoll(servers, await store.read());
  for (const { server, why } of skipped) invocation.note(`${server.name}: left alone (${why})`);
  const words = `${rollReason}${reason ? `: ${reason}` : ''}`;
  const one: Roll = { invocation, client, store, exec, reason: words, limitMs };
  const stopTelling = tellWhenStopped(invocation);
  try {
    await inTurns(todo, atOnce, (server) => rollServer(one, server));
  } finally {
    stopTelling();
  }
  await store.finish();
  const done = todo.map(({ name }) => name);
  return said({ pool, rolled: done, skipped: skipped.map(({ server }) => server.name) }, `Pool ${pool}: ${done.length} servers are back in service.`); // biome-ignore format: one row reads better
};

async function rollServer(roll: Roll, { id, name }: Server): Promise<void> {
  const { invocation, client, store, limitMs, exec, reason } = roll;
  const path = serverPath(id);
  const body = { reason, force: false };
  const before = await client.call<ServerDetail>(`${path}/drain`, { method: 'POST', body });
  await store.bootBefore(id, bootOf(before));
  invocation.note(`${name}: draining`);
  await waitDrained(client, id, name, limitMs);
  if (exec) {
    invocation.note(`${name}: drained; running the hook`);
    await runHook(exec, before, invocation.settings.environment);
  } else invocation.note(`${name}: drained; waiting for its restart`);
  await waitBack(roll, before, await store.bootBefore(id, bootOf(before)));
  await client.call(`${path}/undrain`, { method: 'POST', body: { reason: `${rollReason}: done` } });
  await store.add(id);
  invocation.note(`${name}: back in service`);
}

/** Ready, and heard of after the hook; without a hook also started anew. */
async function waitBack({ client, exec, limitMs }: Roll, before: ServerDetail, boot: string): Promise<void> {
  const { lastSeenAt } = await client.call<ServerDetail>(serverPath(before.id));
  await waitUntil(
    async () => {
      const now = await client.call<ServerDetail>(serverPath(before.id));
      if (!exec && bootOf(now) === boot) return { done: false, standing: 'it was not restarted yet' };
      if (now.lastSeenAt === lastSeenAt) return { done: false, standing: 'it was not heard of since' };
      const why = notBack(now);
      return { done: why === undefined, standing: why ?? '' };
    },
    limitMs,
    `server ${before.name} back`,
  );
}

/** Its output goes to stderr. Throws `upstream` when it ends with anything but 0; the server stays out of service. */
async function runHook(command: string, { id, name, http }: Server, environment: NodeJS.ProcessEnv): Promise<void> {
  const env = { ...environment, PERCH_SERVER_NAME: name, PERCH_SERVER_ID: id, PERCH_SERVER_HTTP: http };
  const child = spawn(command, { shell: true, stdio: ['ignore', 2, 2], env });
  const ended = await new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code === 0 ? '' : (signal ?? `exit code ${code}`)));
  });
  if (ended)
    throw new AppError(
      'upstream',
      `the hook for server ${name} failed (${ended}); it stays out of service: run the same command again, or perch fleet undrain ${name}`,
    );
}

async function inTurns<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  let failed = false;
  const workers = Array.from({ length: Math.min(atOnce, left.length) }, async () => {
    for (let item = left.shift(); item !== undefined && !failed; item = left.shift())
      await work(item).catch((error: unknown) => {
        failed = true;
        throw error;
      });
  });
  const results = await Promise.allSettled(workers);
  const broken = results.find((result) => result.status === 'rejected');
  if (broken) throw broken.reason;
}

function tellWhenStopped(invocation: Invocation): () => void {
  const stopped = () => {
    invocation.note('stopped: what was drained stays out of service; the same command goes on from here');
    process.exit(130);
  };
  process.once('SIGINT', stopped);
  return () => void process.removeListener('SIGINT', stopped);
}
