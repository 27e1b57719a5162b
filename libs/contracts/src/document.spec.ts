import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, diffSections, holdsRemovals, patchSections } from './index.ts';

const same = (a: unknown, b: unknown) => canonicalJson(a) === canonicalJson(b);
const key = fc.string({ minLength: 1, maxLength: 4 }).filter((text) => !(text in {}));
const member = fc.oneof(fc.integer(), fc.string(), fc.record({ a: fc.integer(), b: fc.array(fc.integer()) }));
const sections = fc.record({ endpoints: fc.dictionary(key, member), servers: fc.dictionary(key, member) });

describe('patches between documents', () => {
  it('turn the one into the other, also when applied twice, and leave the first as it was', () => {
    fc.assert(
      fc.property(sections, sections, (before, after) => {
        const kept = canonicalJson(before);
        const patch = JSON.parse(JSON.stringify(diffSections(before, after, same)));
        const once = patchSections(before, patch);
        expect(canonicalJson(once)).toBe(canonicalJson(after));
        expect(canonicalJson(patchSections(once, patch))).toBe(canonicalJson(after));
        expect(canonicalJson(before)).toBe(kept);
      }),
    );
  });

  it('name only what changed', () => {
    expect(diffSections({ endpoints: { a: 1, b: 2 } }, { endpoints: { a: 1, c: 3 } }, same)).toEqual({
      endpoints: { b: null, c: 3 },
    });
    expect(diffSections({ endpoints: { a: 1 } }, { endpoints: { a: 1 } }, same)).toEqual({});
  });
});

describe('holdsRemovals', () => {
  const at = (lineage: string, confirmed: boolean) => ({ lineage, revision: 1, schema: 1, confirmed });
  it.each([
    ['confirmed, everything goes', at('a', false), at('a', true), 4, 4, false],
    ['unconfirmed, half goes', at('a', false), at('a', false), 4, 2, false],
    ['unconfirmed, over half stays', at('a', false), at('a', false), 4, 3, true],
    ['unconfirmed, other lineage, one stays', at('a', true), at('b', false), 4, 1, true],
    ['confirmed, other lineage, goes', at('a', true), at('b', true), 4, 4, false],
    ['nothing to remove', at('a', true), at('b', false), 4, 0, false],
    ['never followed anybody, one of one stays', undefined, at('a', false), 1, 1, true],
  ])('%s', (_name, last, next, served, removed, held) => {
    expect(holdsRemovals(last, next, { served, removed })).toBe(held);
  });
});
