import type { Pool, Router, Server } from '@perch/contracts';
import { formatAge, formatBytes } from '../duration.ts';
import { said, shownList } from '../output.ts';
import type { Run } from '../verb.ts';
import { roomText } from './fleet-server.ts';

const modelCounts = (server: Server): string => {
  const models = Object.values(server.observed?.models ?? {});
  const ready = models.filter(({ state }) => state === 'ready').length;
  const failed = models.filter(({ state }) => state === 'failed' || state === 'stuck').length;
  return `${ready} ready of ${models.length}${failed > 0 ? `, ${failed} failed` : ''}`;
};

const serviceText = ({ drain }: Server): string => (drain ? (drain.drained ? 'drained' : 'draining') : 'yes');

/** Used and whole, as far as the server tells. */
const usageText = (used: number | undefined, total: number | null | undefined): string | undefined =>
  used === undefined ? undefined : `${formatBytes(used)}${total ? ` of ${formatBytes(total)}` : ''}`;

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

function gpuText({ observed }: Server): string | undefined {
  const gpus = observed?.facts?.gpus ?? [];
  if (gpus.length === 0) return undefined;
  return usageText(sum(Object.values(observed?.usage?.gpuBytes ?? {})), sum(gpus.map(({ totalBytes }) => totalBytes)));
}

const servers: Run = async (invocation) => {
  const client = await invocation.admin();
  const now = Date.now();
  return shownList(
    await client.list<Server>('/servers'),
    [
      ['server', ({ name }) => name],
      ['pool', ({ pool }) => pool],
      ['live', ({ live }) => (live ? 'yes' : 'no')],
      ['in service', serviceText],
      ['triton', ({ observed }) => (observed ? `${observed.triton.name} ${observed.triton.version}` : undefined)],
      ['ready', ({ observed }) => (observed?.triton.ready ? 'yes' : 'no')],
      ['models', modelCounts],
      ['memory', ({ observed }) => usageText(observed?.usage?.ramBytes, observed?.facts?.ramBytes)],
      ['gpu memory', gpuText],
      ['restarts', ({ observed }) => observed?.supervision?.restarts],
      ['in step', ({ observed, desiredRevision }) => (observed && observed.revision >= desiredRevision ? 'yes' : 'no')],
      ['held removals', ({ observed }) => observed?.heldRemovals.length || undefined],
      ['disk free', ({ observed }) => (observed?.disk.freeBytes ? formatBytes(observed.disk.freeBytes) : undefined)],
      [
        'agent',
        ({ external }) =>
          external ? `none (${external.mode})${external.problem ? `: ${external.problem}` : ''}` : undefined,
      ],
      ['http', ({ http }) => http],
      ['seen', ({ lastSeenAt }) => formatAge(lastSeenAt, now)],
      ['id', ({ id }) => id],
    ],
    'No servers yet. Start an agent beside a Triton with a join key: perch key join --server',
  );
};

const routers: Run = async (invocation) => {
  const client = await invocation.admin();
  const now = Date.now();
  return shownList(
    await client.list<Router>('/routers'),
    [
      ['router', ({ name }) => name],
      ['live', ({ live }) => (live ? 'yes' : 'no')],
      ['table', ({ revision }) => revision],
      ['in flight', ({ inFlight }) => Object.values(inFlight).reduce((sum, count) => sum + count, 0)],
      ['problems', ({ problems }) => Object.values(problems)],
      ['seen', ({ lastSeenAt }) => formatAge(lastSeenAt, now)],
      ['id', ({ id }) => id],
    ],
    'No routers yet. Start one with a join key: perch key join --router',
  );
};

const pools: Run = async (invocation) => {
  const client = await invocation.admin();
  return shownList(
    await client.list<Pool>('/pools'),
    [
      ['pool', ({ name }) => name],
      ['servers', ({ servers: count }) => count],
      ['live', ({ live }) => live],
      ['out of service', ({ draining }) => draining || undefined],
      ['models', ({ models }) => models],
      ['endpoints', ({ endpoints }) => endpoints],
      ['memory', ({ ram }) => ram && roomText(ram)],
      ['gpu memory', ({ gpu }) => gpu && roomText(gpu)],
    ],
    'No pools yet: a pool is there as soon as a server joins it (perch key join --server --pool NAME).',
  );
};

const confirm: Run = async (invocation) => {
  const client = await invocation.admin();
  const value = await client.call<unknown>('/fleet/confirm', { method: 'POST' });
  return said(
    value ?? { confirmed: true },
    'Confirmed: agents and routers may now remove what the documents leave out.',
  );
};

const forget: Run = async (invocation, [id]) => {
  const client = await invocation.admin();
  await client.call(`/routers/${encodeURIComponent(id as string)}/forget`, { method: 'POST' });
  return said({ forgotten: id }, `Router ${id} is forgotten; unloading no longer waits for it.`);
};

export const runs = { servers, routers, pools, confirm, forget };
