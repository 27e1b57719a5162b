import { AppError, type Page, type Rollout, type RolloutEvent } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';

const isId = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
export const rolloutPath = (id: string): string => `/rollouts/${encodeURIComponent(id)}`;

/** What an argument names: a rollout by its id, or the one of an endpoint that goes on, else its last one. Throws `not_found`. */
export async function findRollout(client: AdminClient, text: string): Promise<Rollout> {
  if (isId(text)) return client.call<Rollout>(rolloutPath(text));
  for (const active of [true, false]) {
    const query = { endpoint: text, active, limit: 1 };
    const { items } = await client.call<Page<Rollout>>('/rollouts', { query });
    if (items[0]) return items[0];
  }
  await client.call(`/endpoints/${encodeURIComponent(text)}`); // says so when there is no such endpoint
  throw new AppError(
    'not_found',
    `endpoint ${text} never had a rollout; publish a version (traffic.mode: progressive), or: perch rollout start ${text}`,
  );
}

/** Oldest first, above event `after`. */
export const readEvents = (client: AdminClient, id: string, after = 0): Promise<RolloutEvent[]> =>
  client.list<RolloutEvent>(`${rolloutPath(id)}/events`, { after });
