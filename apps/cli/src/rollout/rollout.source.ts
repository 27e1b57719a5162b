import { setTimeout as pause } from 'node:timers/promises';
import { AppError, type Page, type Rollout, type RolloutEvent } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';

const isId = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
export const rolloutPath = (id: string): string => `/rollouts/${encodeURIComponent(id)}`;

const newest = async (client: AdminClient, endpoint: string, active: boolean): Promise<Rollout | undefined> =>
  (await client.call<Page<Rollout>>('/rollouts', { query: { endpoint, active, limit: 1 } })).items[0];

/** What an argument names: a rollout by its id, or the one of an endpoint that goes on, else its last one. Throws `not_found`. */
export async function findRollout(client: AdminClient, text: string): Promise<Rollout> {
  if (isId(text)) return client.call<Rollout>(rolloutPath(text));
  const found = (await newest(client, text, true)) ?? (await newest(client, text, false));
  if (found) return found;
  await client.call(`/endpoints/${encodeURIComponent(text)}`); // says so when there is no such endpoint
  throw new AppError(
    'not_found',
    `endpoint ${text} never had a rollout; publish a version (traffic.mode: progressive), or: perch rollout start ${text}`,
  );
}

/**
 * The same for whoever just published: where none goes on, one is given `limitMs` to begin, so that the one before it is
 * not taken for it.
 */
export async function findRolloutToCome(client: AdminClient, text: string, limitMs: number): Promise<Rollout> {
  const deadline = Date.now() + limitMs;
  if (isId(text)) return findRollout(client, text);
  for (;;) {
    const found = await newest(client, text, true);
    if (found) return found;
    if (Date.now() >= deadline) return findRollout(client, text);
    await pause(Math.min(250, Math.max(1, deadline - Date.now())));
  }
}

/** Oldest first, above event `after`. */
export const readEvents = (client: AdminClient, id: string, after = 0): Promise<RolloutEvent[]> =>
  client.list<RolloutEvent>(`${rolloutPath(id)}/events`, { after });
