import type { EndpointGeneration } from '@perch/contracts';
import { formatAge } from '../duration.ts';
import { shownList } from '../output.ts';
import type { Run } from '../verb.ts';
import { endpointPath } from './ready.ts';

export const run: Run = async (invocation, [name]) => {
  const client = await invocation.admin();
  const generations = await client.list<EndpointGeneration>(`${endpointPath(name as string)}/generations`);
  const now = Date.now();
  return shownList(
    generations.sort((a, b) => b.generation - a.generation),
    [
      ['generation', ({ generation }) => generation],
      ['when', ({ createdAt }) => formatAge(createdAt, now)],
      ['by', ({ actor }) => actor],
      ['reason', ({ reason }) => reason],
      [
        'model',
        ({ spec }) =>
          spec
            ? `${spec.model.project}/${spec.model.name}${spec.model.version ? `@${spec.model.version}` : ''}`
            : 'removed',
      ],
    ],
    `${name} has no generations.`,
  );
};
