import { expect, it } from 'vitest';
import { decideModuleUsers, type ModuleUses } from './module-users.decide.ts';

const nobody: ModuleUses = { endpoints: [], deployments: [], generations: [], versions: [] };

it.each<[string, Partial<ModuleUses>, string[]]>([
  ['nobody', {}, []],
  ['a spec', { endpoints: ['text/a'] }, ['endpoint text/a']],
  ['what still serves', { deployments: [{ endpoint: 'text/a', version: 3 }] }, ['endpoint text/a (version 3)']],
  [
    'what somebody may go back to',
    { generations: [{ endpoint: 'text/a', generation: 4 }] },
    ['endpoint text/a (generation 4, which may be rolled back to)'],
  ],
  ['a version', { versions: ['p/m@3'] }, ['version p/m@3 (carries it)']],
  [
    'each endpoint once, by its strongest reason, in order',
    {
      endpoints: ['b'],
      deployments: [
        { endpoint: 'b', version: 1 },
        { endpoint: 'a', version: 2 },
      ],
      generations: [
        { endpoint: 'a', generation: 1 },
        { endpoint: 'b', generation: 2 },
      ],
      versions: ['p/m@3'],
    },
    ['endpoint a (version 2)', 'endpoint b', 'version p/m@3 (carries it)'],
  ],
])('is held by %s', (_who, uses, words) => expect(decideModuleUsers({ ...nobody, ...uses })).toEqual(words));
