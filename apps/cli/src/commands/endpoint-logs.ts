import { setTimeout as pause } from 'node:timers/promises';
import { AppError, type EndpointLog, type EndpointLogLine } from '@perch/contracts';
import { parseDuration } from '../duration.ts';
import type { Invocation } from '../invocation.ts';
import { plainText } from '../output.ts';
import type { Options, Run } from '../verb.ts';
import { endpointPath } from './ready.ts';

const followEveryMs = 1_000;
const mostLines = 1_000;

export const run: Run = async (invocation, [name], options) => {
  const limit = Number(options['limit'] ?? 100);
  if (!Number.isInteger(limit) || limit < 1 || limit > mostLines)
    throw new AppError('invalid', `--limit: wants 1 to ${mostLines}, got "${options['limit']}"`);
  const client = await invocation.admin();
  const path = `${endpointPath(name as string)}/logs`;
  const log = await client.call<EndpointLog>(path, { query: { limit, since: sinceOf(options, Date.now()) } });
  if (!options['follow']) {
    const none = `Nothing is known of ${name}${options['since'] ? ' within that time' : ''}.`;
    return { value: log.items, text: () => (log.items.length > 0 ? log.items.map(lineText).join('\n') : none) };
  }
  let after = log.next;
  const consoles = new Set<string>();
  print(invocation, fresh(log.items, consoles));
  for (;;) {
    await pause(followEveryMs);
    // a control plane that starts again is asked again; whatever else is wrong ends the following
    const more = await client
      .call<EndpointLog>(path, { query: { limit: mostLines, after } })
      .catch((error: unknown) => {
        if (error instanceof AppError && error.code === 'unavailable') return undefined;
        throw error;
      });
    if (!more) continue;
    after = more.next;
    print(invocation, fresh(more.items, consoles));
  }
};

function sinceOf(options: Options, now: number): string | undefined {
  const { since } = options;
  return since === undefined ? undefined : new Date(now - parseDuration(String(since), '--since')).toISOString();
}

/** Console lines have no number: each is shown once. */
function fresh(items: readonly EndpointLogLine[], consoles: Set<string>): EndpointLogLine[] {
  return items.filter(({ source, action, message }) => {
    if (action !== 'console') return true;
    const key = `${source}\n${message}`;
    const isNew = !consoles.has(key);
    consoles.add(key);
    return isNew;
  });
}

/** JSON and YAML lines stand alone, so that a program can read them as they come. */
function print({ output }: Invocation, items: readonly EndpointLogLine[]): void {
  for (const item of items) process.stdout.write(`${output === 'table' ? lineText(item) : JSON.stringify(item)}\n`);
}

export const lineText = ({ at, source, actor, message }: EndpointLogLine): string => {
  const who = actor === null || actor === 'system' ? source : `${source} by ${actor}`;
  return `${(at ?? '-').padEnd(24)}  ${plainText(who)}: ${plainText(message)}`;
};
