import type { QuarantineEntry } from '@perch/contracts';
import { formatAge } from '../duration.ts';
import { said, tableText } from '../output.ts';
import type { Run } from '../verb.ts';
import { endpointPath } from './ready.ts';

const shortDigits = 12;

export const run: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const path = `${endpointPath(name as string)}/quarantine`;
  const release = options['release'] as string | undefined;
  if (release !== undefined) {
    const entry = await client.call<QuarantineEntry>(`${path}/${encodeURIComponent(release)}`, { method: 'DELETE' });
    return said(entry, `Version ${entry.version} (${short(entry)}) may be deployed by endpoint ${name} again.`);
  }
  const { items } = await client.call<{ items: QuarantineEntry[] }>(path);
  return { value: items, text: () => quarantineText(items, name as string, Date.now()) };
};

const short = ({ digest }: QuarantineEntry) => digest.slice(0, shortDigits);

export function quarantineText(entries: readonly QuarantineEntry[], name: string, now: number): string {
  if (entries.length === 0) return `Rollouts of endpoint ${name} refused nothing.`;
  return tableText(entries, [
    ['version', ({ version }) => version],
    ['digest', short],
    ['since', ({ since }) => formatAge(since, now)],
    ['reason', ({ reason }) => reason],
    ['rollout', ({ rollout }) => rollout],
  ]);
}
