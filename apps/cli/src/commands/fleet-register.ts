import { readFile } from 'node:fs/promises';
import { AppError, registerServer, type ServerDetail } from '@perch/contracts';
import { said } from '../output.ts';
import { parsePairs } from '../reference.ts';
import type { Run } from '../verb.ts';
import { waitMs } from '../wait.ts';
import { serverPath } from './fleet-drain.ts';

const lookEveryMs = 500;

/** A secret need not stand in the command line: `--header key=@file` reads it. */
async function headersOf(given: string[] | undefined): Promise<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const [key, value] of Object.entries(parsePairs(given ?? [], '--header')))
    headers[key] = value.startsWith('@') ? (await readHeader(value.slice(1))).trim() : value;
  return headers;
}

const readHeader = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((cause) => {
    throw new AppError('invalid', `--header: ${file} cannot be read: ${cause.message}`, { cause });
  });

export const register: Run = async (invocation, [name], options) => {
  const { url, grpc, pool, mode } = options;
  const labels = parsePairs(options['label'] ?? [], '--label');
  const body = { name, url, grpc, pool, mode, labels, headers: await headersOf(options['header']) };
  const wish = registerServer.safeParse(body);
  if (!wish.success) {
    const [issue] = wish.error.issues;
    throw new AppError('invalid', `--${issue!.path.join('.')}: ${issue!.message}`);
  }
  const client = await invocation.admin();
  let server = await client.call<ServerDetail>('/servers', { method: 'POST', body: wish.data });
  const deadline = Date.now() + (waitMs(options['wait']) ?? 0);
  while (!server.live && Date.now() < deadline) {
    await new Promise((next) => setTimeout(next, lookEveryMs));
    server = await client.call<ServerDetail>(serverPath(server.id));
  }
  if (options['wait'] !== undefined && !server.live)
    throw new AppError('timeout', `server ${name} does not answer yet: ${server.external?.problem ?? 'not looked at'}`);
  const held = Object.keys(server.observed?.models ?? {}).sort();
  invocation.hint(
    `Next: perch endpoint add NAME --source ${name}/${held[0]?.split('/')[0] ?? 'MODEL'}    (perch fleet server show ${name} lists what it holds)`,
  );
  return said(
    server,
    `Server ${name} is registered${server.live ? ` and holds ${held.join(', ') || 'nothing'}` : ''}.`,
  );
};

export const unregister: Run = async (invocation, [key], options) => {
  const client = await invocation.admin();
  await client.call(`${serverPath(key as string)}${options['force'] ? '?force=true' : ''}`, { method: 'DELETE' });
  return said({ unregistered: key }, `Server ${key} is forgotten; what it holds was left as it is.`);
};
