import { diffSections, patchSections } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AnswerKind,
  decideAnswer,
  type Entry,
  entryOf,
  type Follower,
  type History,
  patchReach,
  planEntries,
  servedSchema,
} from './document.plan.ts';

const L = 'l-now';
const history =
  (revisions: number[], revision = revisions.at(-1) ?? 0) =>
  ({ after }: Follower): History => ({
    head: { lineage: L, revision, confirmed: true },
    pastLineages: ['l-past'],
    oldest: revisions[0] ?? null,
    holds: revisions.includes(after ?? -1),
    behind: revisions.filter((one) => one > (after ?? 0)).length,
  });
const reads = (after: number | null, schema: number, holds: number): Follower => ({ after, lineage: L, schema, holds });
const follower = (after: number | null, lineage: string | null = L): Follower => ({ after, lineage });
const long = Array.from({ length: 60 }, (_, n) => 100 + n);

describe('what a follower is told', () => {
  it.each<[string, Follower, ReturnType<typeof history>, AnswerKind]>([
    ['holds nothing', follower(null, null), history([10]), 'whole'],
    ['holds nothing, and nothing was published yet', follower(null, null), history([]), 'nothing'],
    ['holds something, and nothing was published yet', follower(5), history([]), 'went_back'],
    ['is up to date', follower(12), history([10, 12]), 'nothing'],
    ['is one behind', follower(10), history([10, 12]), 'patch'],
    ['is far behind', follower(100), history(long), 'whole'],
    ['is as far behind as a patch reaches', follower(long.at(-1 - patchReach)!), history(long), 'patch'],
    ['is older than our memory', follower(3), history(long), 'whole'],
    ['is ahead of us', follower(13), history([10, 12]), 'went_back'],
    ['holds a revision we never gave', follower(11), history([10, 12]), 'went_back'],
    ['comes from a past lineage', follower(99, 'l-past'), history([10]), 'whole'],
    ['comes from a lineage we never had', follower(1, 'l-future'), history([10]), 'went_back'],
    ['knows a lineage and no revision', follower(null), history([10]), 'whole'],
    ['reads the schema before ours and holds it', reads(12, 1, 1), history([10, 12]), 'nothing'],
    ['reads the schema before ours and is one behind', reads(10, 1, 1), history([10, 12]), 'patch'],
    ['was upgraded and holds what was written for the schema before', reads(12, 2, 1), history([10, 12]), 'whole'],
    ['was set back to the schema before', reads(10, 1, 2), history([10, 12]), 'whole'],
    ['reads a schema that we do not know yet', reads(10, 3, 2), history([10, 12]), 'patch'],
    ['holds another schema, and nothing was published', reads(5, 2, 1), history([]), 'went_back'],
  ])('%s', (_what, who, known, answer) => expect(decideAnswer(who, known(who))).toBe(answer));

  it('gives out the schema before, where it is told to, and the whole to whoever holds the newer one', () => {
    const known = history([10, 12]);
    const [upToDate, newer] = [reads(12, 2, 1), reads(12, 2, 2)];
    expect([servedSchema(upToDate, 1), decideAnswer(upToDate, known(upToDate), 1)]).toEqual([1, 'nothing']);
    expect([servedSchema(newer, 1), decideAnswer(newer, known(newer), 1)]).toEqual([1, 'whole']);
  });
});

describe('what changes from one publication to the next', () => {
  const always = () => true;
  it.each<[string, Entry[], Entry[], (entry: Entry) => boolean, [string, unknown, string[]][]]>([
    ['nothing', [entryOf('s', 'a', 1)], [entryOf('s', 'a', 1)], always, []],
    ['a new one', [], [entryOf('s', 'a', 1)], always, [['a', 1, []]]],
    ['a changed one', [entryOf('s', 'a', 1)], [entryOf('s', 'a', 2)], always, [['a', 2, []]]],
    ['one that was meant to go', [entryOf('s', 'a', 1)], [], always, [['a', null, []]]],
    ['one that vanished', [entryOf('s', 'a', 1)], [], () => false, [['a', null, ['a']]]],
    ['one that vanished before, and is still away', [{ ...entryOf('s', 'a', null), unmeant: ['a'] }], [], always, []],
    [
      'one that vanished and is back',
      [{ ...entryOf('s', 'a', null), unmeant: ['a'] }],
      [entryOf('s', 'a', 1)],
      always,
      [['a', 1, []]],
    ],
    [
      'the same key in another section',
      [entryOf('s', 'a', 1)],
      [entryOf('s', 'a', 1), entryOf('t', 'a', 1)],
      always,
      [['a', 1, []]],
    ],
  ])('%s', (_what, published, wanted, meant, expected) => {
    expect(planEntries(published, wanted, meant).map(({ key, value, unmeant }) => [key, value, unmeant])).toEqual(
      expected,
    );
  });

  const sections = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 0, max: 3 }));
  it('publishing the changes one after the other gives the wanted members, and patches come to the same', () => {
    fc.assert(
      fc.property(fc.array(sections, { minLength: 1, maxLength: 6 }), (worlds) => {
        let published = new Map<string, Entry>();
        let followed: Record<string, Record<string, unknown>> = { s: {} };
        for (const world of worlds) {
          const wanted = Object.entries(world).map(([key, value]) => entryOf('s', key, value));
          const changes = planEntries([...published.values()], wanted, always);
          published = new Map([...published, ...changes.map((entry) => [entry.key, entry] as const)]);
          const patch = { s: Object.fromEntries(changes.map(({ key, value }) => [key, value])) };
          expect(patchSections(followed, patch)).toEqual({ s: world });
          expect(diffSections(followed, { s: world }, Object.is)).toEqual(changes.length > 0 ? patch : {});
          followed = patchSections(followed, patch);
          expect(
            Object.fromEntries(
              [...published].filter(([, { digest }]) => digest !== null).map(([key, { value }]) => [key, value]),
            ),
          ).toEqual(world);
        }
      }),
    );
  });
});
