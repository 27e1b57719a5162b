import type { GarbageRule } from './row-garbage.ts';

/** Work that no program takes: of a kind that no release knows any more. */
export const workGarbage: readonly GarbageRule[] = [
  {
    kind: 'work',
    what: 'queued work that no program has taken since it was due',
    table: 'work w',
    where: 'w.next_at < $1 and w.ticket is null',
    name: `w.kind || ' ' || w.key`,
  },
];
