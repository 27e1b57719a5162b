import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DesiredAnswer, DesiredServer, Endpoint, Router, Server, Version } from '@perch/contracts';
import { Admin } from '../support/admin.ts';
import type { FleetServer, FleetStack } from '../support/fleet-stack.ts';

export interface ExpectedEndpoint {
  /** Of the endpoint and of its model. */
  name: string;
  replicas: number;
}

const names = (list: Iterable<string>): string => [...list].sort().join(' ') || 'nothing';

/** What is not yet as it must be once all is well; empty: converged. Nothing here is remembered, all is asked for. */
export async function differences(stack: FleetStack, expected: readonly ExpectedEndpoint[]): Promise<string[]> {
  const admin = new Admin(stack, undefined, 5_000);
  try {
    const { confirmed } = await admin.must<{ confirmed: boolean }>('GET', '/status');
    if (!confirmed) return ['a restore is not confirmed'];
    const servers = await admin.servers();
    return [
      ...(await Promise.all(expected.map((one) => endpointFaults(admin, one)))).flat(),
      ...(await Promise.all(stack.servers.map((one) => serverFaults(stack, one, servers)))).flat(),
      ...(await routerFaults(admin, stack)),
      ...servers
        .filter(({ name }) => !stack.servers.some((one) => one.name === name))
        .map(({ name }) => `a server ${name} that nobody started`),
      ...(servers.length > stack.servers.length
        ? [`${servers.length} servers are known, ${stack.servers.length} run`]
        : []),
      ...(await auditFaults(admin)),
    ];
  } catch (error) {
    return [`not all can be asked: ${(error as Error).message.slice(0, 300)}`];
  }
}

async function endpointFaults(admin: Admin, { name, replicas }: ExpectedEndpoint): Promise<string[]> {
  const { items } = await admin.must<{ items: Version[] }>('GET', `/models/${name}/versions?limit=500`);
  const newest = Math.max(...items.filter(({ state }) => state === 'published').map(({ number }) => number));
  const endpoint: Endpoint = await admin.endpoint(name);
  const { phase, message, servingVersions } = endpoint.status;
  const faults: string[] = [];
  if (phase !== 'ready') faults.push(`${name} is ${phase}: ${message}`);
  if (servingVersions[0] !== newest) faults.push(`${name} serves ${servingVersions.join(', ')}, not ${newest}`);
  const live = endpoint.deployments.filter(({ state }) => state !== 'retired');
  for (const { version, state, reason, servers } of live) {
    if (state !== 'ready') faults.push(`${name} version ${version} is ${state}: ${reason}`);
    if (servers.length !== replicas)
      faults.push(`${name} version ${version} is on ${servers.length} of ${replicas} servers`);
  }
  if (live.length !== 2) faults.push(`${name} has ${live.length} deployments, not 2`);
  return faults;
}

/** Desired = observed = what the model server says = what lies on its disk. */
async function serverFaults(stack: FleetStack, one: FleetServer, servers: readonly Server[]): Promise<string[]> {
  const known = servers.find(({ name }) => name === one.name);
  if (!known?.live || !known.observed) return [`${one.name} is not there`];
  const desired = await desiredOf(stack, one);
  const wanted = names(Object.keys(desired.models));
  const faults: string[] = [];
  const say = (what: string, has: string, wants = wanted) => {
    if (has !== wants) faults.push(`${one.name}: ${what} ${has}, wanted ${wants}`);
  };
  const { observed } = known;
  say(
    'reports',
    names(Object.entries(observed.models).map(([name, { state }]) => (state === 'ready' ? name : `${name}:${state}`))),
  );
  say('reports revision', String(observed.revision), String(desired.revision));
  say('holds removals', names(observed.heldRemovals), 'nothing');
  const index = await fetch(`http://${one.http}/v2/repository/index`, {
    method: 'POST', body: '{}', signal: AbortSignal.timeout(3_000),
  }); // biome-ignore format: one row reads better
  const entries = (await index.json()) as { name: string; state?: string; reason?: string }[];
  say(
    'Triton has',
    names(
      entries
        .filter(({ state }) => state && state !== 'UNAVAILABLE')
        .map(({ name, state }) => (state === 'READY' ? name : `${name}:${state}`)),
    ),
  );
  say('its repository has', names((await readdir(one.repository)).filter((name) => !name.startsWith('.'))));
  const blobs = new Set(Object.values(desired.models).flatMap(({ files }) => files.map(({ sha256 }) => sha256)));
  const cache = join(one.folder, 'agent/cache');
  say('its cache has', names(await readdir(join(cache, 'blobs'))), names(blobs));
  say('half pulled are', names(await readdir(join(cache, 'partial'))), 'nothing');
  return faults;
}

async function desiredOf(stack: FleetStack, one: FleetServer): Promise<DesiredServer> {
  const { id, token } = JSON.parse(await readFile(join(one.folder, 'agent/identity.json'), 'utf8'));
  const answer = await fetch(`${stack.controlPlane.address}/internal/v1/servers/${id}/desired?wait=0`, {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(3_000),
  });
  if (!answer.ok) throw new Error(`desired of ${one.name}: ${answer.status}`);
  const body = (await answer.json()) as DesiredAnswer;
  if (body.kind !== 'whole') throw new Error('a whole document was asked for');
  return body.document;
}

async function routerFaults(admin: Admin, stack: FleetStack): Promise<string[]> {
  const { items } = await admin.must<{ items: Router[] }>('GET', '/routers');
  const live = items.filter((one) => one.live);
  const faults = live.flatMap(({ name, held, inFlight, problems }) => [
    ...(held ? [`${name} holds a table back`] : []),
    ...Object.entries(inFlight).map(([id, count]) => `${name} has ${count} requests on ${id}, which is in no table`),
    ...Object.values(problems).map((words) => `${name}: ${words}`),
  ]);
  const revisions = new Set(live.map(({ lineage, revision }) => `${lineage} ${revision}`));
  if (live.length !== stack.routers.length) faults.push(`${live.length} routers live, ${stack.routers.length} run`);
  if (revisions.size > 1) faults.push(`routers follow ${[...revisions].join(' and ')}`);
  return faults;
}

async function auditFaults(admin: Admin): Promise<string[]> {
  const check = await admin.must<{ intact: boolean }>('GET', '/audit/verify');
  return check.intact ? [] : [`the audit chain is broken: ${JSON.stringify(check)}`];
}
