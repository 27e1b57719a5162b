import type { Endpoint } from '@perch/contracts';
import { shownList } from '../output.ts';
import type { Run } from '../verb.ts';

export const run: Run = async (invocation) => {
  const client = await invocation.admin();
  return shownList(
    await client.list<Endpoint>('/endpoints'),
    [
      ['endpoint', ({ name }) => name],
      [
        'model',
        ({ spec }) => `${spec.model.project}/${spec.model.name}${spec.model.version ? `@${spec.model.version}` : ''}`,
      ],
      ['phase', ({ status }) => status.phase],
      ['serving', ({ status }) => status.servingVersions],
      ['next', ({ status }) => status.nextVersion],
      ['generation', ({ generation }) => generation],
      ['message', ({ status }) => status.message],
    ],
    'No endpoints yet. Next: perch endpoint add NAME --model project/name',
  );
};
