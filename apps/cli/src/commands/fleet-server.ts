import type { ServerDetail, ServerModel } from '@perch/contracts';
import { formatAge, formatBytes } from '../duration.ts';
import { factsText, tableText } from '../output.ts';
import type { Run } from '../verb.ts';
import { serverPath, standingOf } from './fleet-drain.ts';

export const show: Run = async (invocation, [key]) => {
  const client = await invocation.admin();
  const server = await client.call<ServerDetail>(serverPath(key as string));
  return { value: server, text: () => serverText(server, Date.now()) };
};

export function serverText(server: ServerDetail, now: number): string {
  const parts = [
    factsText([...identity(server, now), ...hardware(server), ...processFacts(server)]),
    server.models.length > 0 ? modelsText(server.models, now) : 'It holds no models, and is to hold none.',
  ];
  if (server.failures.length > 0)
    parts.push(
      tableText(server.failures, [
        ['failed here for good', ({ tritonModel }) => tritonModel],
        ['reason', ({ reason }) => reason],
      ]),
    );
  const console = server.observed?.supervision?.console ?? [];
  if (console.length > 0)
    parts.push(`Last lines of its console:\n${console.map((line) => `  ${printable(line)}`).join('\n')}`);
  return parts.join('\n\n');
}

// What a program printed is not ours: a terminal must not obey it.
const printable = (line: string) => line.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, '?');

function identity(server: ServerDetail, now: number) {
  const { observed, drain } = server;
  const behind = observed && observed.revision < server.desiredRevision;
  return [
    ['server', server.name],
    ['id', server.id],
    ['pool', server.pool],
    ['labels', labelsText(server.labels)],
    ['live', `${server.live ? 'yes' : 'no'}, last heard of ${formatAge(server.lastSeenAt, now)}`],
    ['address', `${server.http}, gRPC ${server.grpc}`],
    ['agent', server.external ? `none (${server.external.mode})` : undefined],
    ['problem', server.external?.problem ?? undefined],
    ['in service', drain ? drainText(server, now) : 'yes'],
    ['document', `${server.desiredRevision}${behind ? `, the agent follows ${observed.revision}` : ', followed'}`],
    ['held removals', observed?.heldRemovals.length ? observed.heldRemovals : undefined],
  ] as const;
}

const labelsText = (labels: Record<string, string>) => {
  const entries = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return entries.length > 0 ? entries : undefined;
};

function drainText(server: ServerDetail, now: number): string {
  const { by, since, reason, drained } = server.drain!;
  const why = reason ? `: ${reason}` : '';
  return `no, by ${by} ${formatAge(since, now)}${why}; ${drained ? 'drained' : standingOf(server)}`;
}

function hardware({ observed, ram, gpu }: ServerDetail) {
  const facts = observed?.facts;
  return [
    ['triton', observed ? `${observed.triton.name} ${observed.triton.version}` : 'has not reported yet'],
    ['back-ends', facts?.backends ?? undefined],
    ['tensorrt', facts?.tensorrt ?? undefined],
    ['onnxruntime', facts?.onnxruntime ?? undefined],
    ['host', facts?.host],
    ['gpus', facts?.gpus.map(({ name, computeCapability, totalBytes }) => `${name ?? 'GPU'}${computeCapability ? ` (${computeCapability})` : ''} ${formatBytes(totalBytes)}`)], // biome-ignore format: one row reads better
    ['memory', ram ? roomText(ram) : undefined],
    ['gpu memory', gpu ? roomText(gpu) : undefined],
    ['disk free', observed?.disk.freeBytes ? formatBytes(observed.disk.freeBytes) : undefined],
  ] as const;
}

export const roomText = ({ totalBytes, freeBytes }: { totalBytes: number; freeBytes: number }): string =>
  `${formatBytes(freeBytes)} free of ${formatBytes(totalBytes)}`;

function processFacts({ observed }: ServerDetail) {
  const supervision = observed?.supervision;
  if (!supervision) return [];
  return [
    ['process', `${supervision.state}, restarted ${supervision.restarts} times`],
    ['last exit', supervision.lastExit ?? undefined],
  ] as const;
}

const modelsText = (models: readonly ServerModel[], now: number) =>
  tableText(models, [
    ['model', ({ name }) => name],
    ['should be', ({ desired }) => (desired ? 'ready' : 'gone')],
    ['is', ({ state }) => state ?? 'not there'],
    ['since', ({ since }) => formatAge(since, now)],
    ['memory', ({ memory }) => memory && memoryText(memory)],
    ['endpoints', ({ endpoints }) => endpoints],
    ['needs', ({ needs }) => needs],
    ['waits for', ({ waitsFor }) => waitsFor],
    ['reason', ({ reason }) => reason],
  ]);

const memoryText = ({ ramBytes, gpuBytes }: { ramBytes: number; gpuBytes: number }) =>
  gpuBytes > 0 ? `${formatBytes(ramBytes)} + ${formatBytes(gpuBytes)} GPU` : formatBytes(ramBytes);
