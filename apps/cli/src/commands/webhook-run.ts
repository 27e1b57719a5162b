import { AppError, type CreatedWebhook, innerMessage, type Webhook, type WebhookTest } from '@perch/contracts';
import { formatAge } from '../duration.ts';
import { type Shown, said, shownFacts, shownList } from '../output.ts';
import { readText } from '../spec/spec-file.source.ts';
import type { Run } from '../verb.ts';

/** Secrets come from a file: a command line is seen by everybody on the machine. */
async function secretOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const text = await readText(file).catch((error: unknown) => {
    throw new AppError('not_found', `--secret-file: cannot read ${file}: ${innerMessage(error)}`);
  });
  return text.trim();
}

const add: Run = async (invocation, [name, url], options) => {
  const client = await invocation.admin();
  const body = { name, url, events: options['event'] ?? [], secret: await secretOf(options['secretFile']) };
  const made = await client.call<CreatedWebhook>('/webhooks', { method: 'POST', body, once: true });
  invocation.hint(`The secret is not shown again. Next: perch webhook test ${name}`);
  return shownFacts(made, [
    ['name', made.name],
    ['url', made.url],
    ['events', made.events.length > 0 ? made.events : 'all'],
    ['secret', made.secret],
  ]);
};

const state = ({ pending, tries = 0, lastError }: Webhook): string => {
  if (lastError === null) return pending > 0 ? 'sending' : 'good';
  return tries > 0 ? `failing (tried ${tries} times)` : 'failing';
};

const list: Run = async (invocation) => {
  const client = await invocation.admin();
  const now = Date.now();
  return shownList(
    await client.list<Webhook>('/webhooks'),
    [
      ['name', ({ name }) => name],
      ['url', ({ url }) => url],
      ['events', ({ events }) => (events.length > 0 ? events : 'all')],
      ['state', state],
      ['waiting', ({ pending }) => pending],
      ['given up', ({ givenUp }) => givenUp],
      ['last error', ({ lastError }) => lastError],
      ['added', ({ createdAt }) => formatAge(createdAt, now)],
    ],
    'No webhooks. Next: perch webhook add NAME https://…',
  );
};

const remove: Run = async (invocation, [name]) => {
  const client = await invocation.admin();
  await client.call(`/webhooks/${encodeURIComponent(name as string)}`, { method: 'DELETE' });
  return said({ removed: name }, `Webhook ${name} is removed.`);
};

const test: Run = async (invocation, [name]): Promise<Shown> => {
  const client = await invocation.admin();
  const path = `/webhooks/${encodeURIComponent(name as string)}/test`;
  const sent = await client.call<WebhookTest>(path, { method: 'POST', once: true });
  const answer = sent.error ?? `it answered ${sent.status}`;
  const words = sent.delivered
    ? `took the test in ${sent.durationMs} ms (${answer})`
    : `did not take the test: ${answer}`;
  return { ...said(sent, `Webhook ${name} ${words}.`), exitCode: sent.delivered ? 0 : 1 };
};

export const runs = { add, list, remove, test };
