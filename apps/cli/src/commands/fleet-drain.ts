import { AppError, type Server, type ServerDetail } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { said } from '../output.ts';
import type { Run } from '../verb.ts';
import { waitMs, waitUntil } from '../wait.ts';

export const serverPath = (key: string): string => `/servers/${encodeURIComponent(key)}`;

/** What a drain still waits for, in one line. */
export function standingOf({ drain, observed, live }: Server): string {
  if (!drain) return 'in service again';
  const shown = drain.waitsFor.slice(0, 3);
  const more = drain.waitsFor.length > shown.length ? ` and ${drain.waitsFor.length - shown.length} more` : '';
  const silent = live && observed?.triton.live !== false ? '' : ' (it does not answer)';
  return `waits for ${shown.join('; ')}${more}${silent}`;
}

/** Until no router sends to it any more. Throws `timeout` with what is waited for, `conflict` when somebody undrains it. */
export async function waitDrained(client: AdminClient, id: string, name: string, limitMs: number): Promise<void> {
  await waitUntil(
    async () => {
      const server = await client.call<ServerDetail>(serverPath(id));
      if (!server.drain) throw new AppError('conflict', `server ${name} was put back in service meanwhile`);
      return { done: server.drain.drained, standing: standingOf(server) };
    },
    limitMs,
    `server ${name} drained`,
  );
}

export const drain: Run = async (invocation, [key], { reason = '', force = false, wait }) => {
  const client = await invocation.admin();
  const limitMs = waitMs(wait);
  const path = serverPath(key as string);
  let server = await client.call<ServerDetail>(`${path}/drain`, { method: 'POST', body: { reason, force } });
  if (limitMs !== undefined) {
    await waitDrained(client, server.id, server.name, limitMs);
    server = await client.call<ServerDetail>(serverPath(server.id));
  }
  const sentence = server.drain?.drained
    ? `Server ${server.name} is out of service: no router sends to it any more.`
    : `Server ${server.name} is being drained; it ${standingOf(server)}.`;
  return said(server, sentence);
};

export const undrain: Run = async (invocation, [key], { reason = '' }) => {
  const client = await invocation.admin();
  const path = `${serverPath(key as string)}/undrain`;
  const server = await client.call<ServerDetail>(path, { method: 'POST', body: { reason } });
  return said(server, `Server ${server.name} is in service again.`);
};
