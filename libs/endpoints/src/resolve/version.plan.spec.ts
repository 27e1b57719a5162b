import { endpointModel, type VersionState, versionStates } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultMaxVersions, selectVersions, type VersionFacts } from './version.plan.ts';

const model = (more: object = {}) => endpointModel.parse({ project: 'p', name: 'm', ...more });
const v = (number: number, state: VersionState = 'published', tags: string[] = []): VersionFacts => ({
  number,
  state,
  tags,
});

describe('which versions a rule wants', () => {
  it.each<[string, object, VersionFacts[], number[]]>([
    ['nothing there', {}, [], []],
    ['the newest published, whatever the order', {}, [v(1), v(3), v(2)], [3]],
    ['newest is the highest number, not the last published', {}, [v(3), v(10), v(9)], [10]],
    ['several, newest first', { maxVersions: 2 }, [v(1), v(2), v(3)], [3, 2]],
    ['fewer than asked for', { maxVersions: 5 }, [v(1), v(2)], [2, 1]],
    ['no drafts', {}, [v(2, 'draft'), v(1)], [1]],
    ['drafts too', { select: { published: false } }, [v(2, 'draft'), v(1)], [2]],
    ['never archived', { select: { published: false } }, [v(3, 'archived'), v(1)], [1]],
    ['never uploading', { select: { published: false } }, [v(3, 'uploading')], []],
    ['all tags', { select: { tags: ['a', 'b'] } }, [v(3, 'published', ['a']), v(2, 'published', ['b', 'a'])], [2]],
    ['any tag', { select: { tags: ['a', 'b'], tagMatch: 'any' } }, [v(3, 'published', ['b']), v(2)], [3]],
    ['a fixed version', { version: 1 }, [v(1), v(2)], [1]],
    ['a fixed draft', { version: 1 }, [v(1, 'draft')], [1]],
    ['a fixed archived one', { version: 1 }, [v(1, 'archived')], []],
    ['a fixed one that does not exist', { version: 9 }, [v(1)], []],
  ])('%s', (_what, rule, versions, wanted) => {
    expect(selectVersions(model(rule), versions)).toEqual(wanted);
  });

  it('keeps one version when the rule does not say how many', () => expect(defaultMaxVersions).toBe(1));

  const facts = fc.uniqueArray(
    fc.record({
      number: fc.integer({ min: 1, max: 30 }),
      state: fc.constantFrom(...versionStates),
      tags: fc.subarray(['a', 'b', 'c']),
    }),
    { selector: ({ number }) => number, maxLength: 12 },
  );
  it('order of the list does not matter; the answer is sorted, bounded and eligible', () => {
    fc.assert(
      fc.property(
        facts,
        fc.integer({ min: 1, max: 4 }),
        fc.subarray(['a', 'b']),
        fc.boolean(),
        (versions, maxVersions, tags, published) => {
          const rule = model({ maxVersions, select: { tags, published } });
          const wanted = selectVersions(rule, versions);
          expect(selectVersions(rule, [...versions].reverse())).toEqual(wanted);
          expect(wanted).toEqual([...wanted].sort((a, b) => b - a));
          expect(wanted.length).toBeLessThanOrEqual(maxVersions);
          for (const number of wanted) {
            const version = versions.find((one) => one.number === number)!;
            expect(published ? ['published'] : ['published', 'draft']).toContain(version.state);
            for (const tag of tags) expect(version.tags).toContain(tag);
          }
        },
      ),
    );
  });
});
