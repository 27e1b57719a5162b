import type { Split, SplitSpecInput } from '@perch/contracts';
import { formatAge } from '../duration.ts';
import { factsText, shownList, tableText } from '../output.ts';
import type { Run } from '../verb.ts';
import { splitPath } from './split-change.ts';

/** What the spec says: `text/a 90, text/b 10`, or `newest below text: 0.1, 0.9`. */
export const sharesText = ({ targets, weights, targetPrefix, newestFirst }: SplitSpecInput): string =>
  targets
    ? targets.map((target, at) => `${target} ${weights![at]}`).join(', ')
    : `newest first below ${targetPrefix}/: ${newestFirst!.join(', ')}`;

export const list: Run = async (invocation) => {
  const client = await invocation.admin();
  return shownList(
    await client.list<Split>('/splits'),
    [
      ['split', ({ name }) => name],
      ['shares', ({ spec }) => sharesText(spec)],
      ['generation', ({ generation }) => generation],
      ['now', ({ message }) => message],
    ],
    'No splits yet. Next: perch split add NAME --target ENDPOINT=90 --target ENDPOINT/VERSION=10',
  );
};

export const show: Run = async (invocation, [name]) => {
  const client = await invocation.admin();
  const split = await client.call<Split>(splitPath(name as string));
  return { value: split, text: () => splitText(split, Date.now()) };
};

export function splitText({ name, spec, arms, message, generation, updatedBy, updatedAt }: Split, now: number): string {
  const facts = factsText([
    ['split', name],
    ['shares', sharesText(spec)],
    ['now', message],
    ['sticky', spec.sticky?.header],
    ['access', spec.access.inference],
    ['description', spec.description || undefined],
    ['generation', `${generation} by ${updatedBy}, ${formatAge(updatedAt, now)}`],
  ]);
  const table = tableText(arms, [
    ['target', ({ target }) => target || '(none)'],
    ['endpoint', ({ endpoint }) => endpoint],
    ['version', ({ version }) => version],
    ['traffic', ({ weightPercent }) => `${weightPercent} %`],
    ['missing', ({ missing }) => missing],
  ]);
  return `${facts}\n\n${table}`;
}
