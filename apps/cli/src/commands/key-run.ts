import { type ApiKey, AppError, type CreatedKey } from '@perch/contracts';
import { formatAge, parseDuration } from '../duration.ts';
import { said, shownFacts, shownList } from '../output.ts';
import type { Run } from '../verb.ts';

function expiry(text: string | undefined, now: number): string | undefined {
  if (text === undefined) return undefined;
  if (/^\d+(\.\d+)?(s|m|h|d)$/.test(text)) return new Date(now + parseDuration(text, '--expires')).toISOString();
  const at = Date.parse(text);
  if (Number.isNaN(at) || at <= now)
    throw new AppError('invalid', `--expires: wants 90d or a date to come, got "${text}"`);
  return new Date(at).toISOString();
}

const create: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const body = {
    name,
    role: options['role'],
    projects: options['project'] ?? [],
    endpoints: options['endpoint'] ?? [],
    expiresAt: expiry(options['expires'], Date.now()),
  };
  const made = await client.call<CreatedKey>('/keys', { method: 'POST', body, once: true });
  invocation.hint('The secret is not shown again.');
  return shownFacts(made, [
    ['id', made.id],
    ['name', made.name],
    ['role', made.role],
    ['expires', made.expiresAt ?? 'never'],
    ['secret', made.secret],
  ]);
};

const list: Run = async (invocation) => {
  const client = await invocation.admin();
  const now = Date.now();
  return shownList(
    await client.list<ApiKey>('/keys'),
    [
      ['name', ({ name }) => name],
      ['role', ({ role }) => role],
      ['projects', ({ projects }) => projects],
      ['endpoints', ({ endpoints }) => endpoints],
      ['made', ({ createdAt }) => formatAge(createdAt, now)],
      ['expires', ({ expiresAt }) => expiresAt],
      [
        'state',
        ({ revokedAt, expiresAt }) =>
          revokedAt ? 'revoked' : expiresAt && Date.parse(expiresAt) < now ? 'expired' : 'good',
      ],
      ['id', ({ id }) => id],
    ],
    'No keys.',
  );
};

const revoke: Run = async (invocation, [id]) => {
  const client = await invocation.admin();
  await client.call(`/keys/${encodeURIComponent(id as string)}`, { method: 'DELETE' });
  return said({ revoked: id }, `Key ${id} is revoked.`);
};

const join: Run = async (invocation, [name], options) => {
  if (!options['server'] === !options['router'])
    throw new AppError('invalid', 'who joins with it? Give --server (with --pool) or --router');
  const joins = options['server'] ? 'server' : 'router';
  const client = await invocation.admin();
  const body = { name: name ?? `${joins}s`, joins, ...(options['server'] ? { pool: options['pool'] } : {}) };
  const made = await client.call<CreatedKey>('/join-keys', { method: 'POST', body, once: true });
  invocation.hint(`Next, on the machine that joins: PERCH_JOIN_KEY=… and PERCH_CONTROL_URL=${client.target.url}`);
  return shownFacts(made, [
    ['id', made.id],
    ['joins', joins],
    ['pool', options['server'] ? options['pool'] : undefined],
    ['secret', made.secret],
  ]);
};

export const runs = { create, list, revoke, join };
