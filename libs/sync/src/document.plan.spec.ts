import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DesiredServer } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { acceptDocument, type Documents, desiredOf, heldRemovals, noDocuments, readAnswer } from './document.plan.ts';
import { DocumentStore } from './document.store.ts';
import { desiredModelOf, FakeBlobStore } from './world.fake.ts';

const store = new FakeBlobStore();
const [, model] = desiredModelOf(store, 'weights');
const lineages = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'] as const;
const document = (names: string, over: Partial<DesiredServer> = {}): DesiredServer => ({
  lineage: lineages[0],
  revision: 1,
  schema: 1,
  confirmed: true,
  models: Object.fromEntries([...names].map((name) => [name, model])),
  ...over,
});
const namesOf = (documents: Documents) => Object.keys(desiredOf(documents).models).sort().join('');
const after = (steps: [DesiredServer, string?][]) =>
  steps.reduce((documents, [next, present]) => acceptDocument(documents, next, [...(present ?? '')]), noDocuments);

describe('acceptDocument', () => {
  it.each<[string, [DesiredServer, string?][], string, boolean, string]>([
    ['nothing', [], '', false, ''],
    ['a first one', [[document('ab')]], 'ab', true, ''],
    ['a confirmed one that removes all', [[document('ab')], [document('', { revision: 2 })]], '', true, ''],
    [
      'an unconfirmed one that removes half',
      [[document('ab')], [document('a', { revision: 2, confirmed: false })]],
      'a',
      true,
      '',
    ],
    [
      'an unconfirmed one that removes more',
      [[document('abc')], [document('a', { revision: 2, confirmed: false })]],
      'abc',
      false,
      'bc',
    ],
    ['… and adds', [[document('abc')], [document('ad', { revision: 2, confirmed: false })]], 'abcd', false, 'bc'],
    [
      'another lineage that only adds',
      [[document('a')], [document('ab', { lineage: lineages[1], confirmed: false })]],
      'ab',
      true,
      '',
    ],
    [
      'another lineage, unconfirmed, that removes one of many',
      [[document('abcdef')], [document('abcde', { lineage: lineages[1], confirmed: false })]],
      'abcdef',
      false,
      'f',
    ],
    [
      'a later one of the new lineage, still unconfirmed, is held as well',
      [
        [document('abcdef')],
        [document('abcde', { lineage: lineages[1], confirmed: false })],
        [document('abcdeg', { lineage: lineages[1], revision: 2, confirmed: false })],
      ],
      'abcdefg',
      false,
      'f',
    ],
    [
      'the new lineage confirmed',
      [
        [document('abc')],
        [document('a', { lineage: lineages[1], confirmed: false })],
        [document('a', { lineage: lineages[1], revision: 2 })],
      ],
      'a',
      true,
      '',
    ],
    ['an older revision', [[document('ab', { revision: 5 })], [document('', { revision: 4 })]], 'ab', true, ''],
    [
      'a first one after the data folder was lost, unconfirmed',
      [[document('a', { confirmed: false }), 'abc']],
      'a',
      false,
      '',
    ],
    ['the same, confirmed', [[document('a'), 'abc']], 'a', true, ''],
    ['the same, removing little', [[document('ab', { confirmed: false }), 'abc']], 'ab', true, ''],
  ])('%s', (_, steps, names, removalsAllowed, held) => {
    const documents = after(steps);
    expect(namesOf(documents)).toBe(names);
    expect(desiredOf(documents).removalsAllowed).toBe(removalsAllowed);
    expect(heldRemovals(documents, []).join('')).toBe(held);
  });

  it('names orphans among the held removals', () => {
    const documents = after([[document('a', { confirmed: false }), 'abc']]);
    expect(heldRemovals(documents, ['b', 'c'])).toEqual(['b', 'c']);
  });
});

describe('readAnswer', () => {
  const base = after([[document('ab', { revision: 7 })]]);
  const head = { lineage: lineages[0], revision: 8, schema: 1, confirmed: true };

  it('applies a patch to the newest document', () => {
    const next = readAnswer(base, { kind: 'patch', base: 7, ...head, patch: { models: { a: null, c: model } } });
    expect(Object.keys(next.models).sort()).toEqual(['b', 'c']);
    expect(next).toMatchObject(head);
  });

  it.each([
    ['another base', { kind: 'patch' as const, base: 6, ...head, patch: {} }, 'conflict'],
    ['another lineage', { kind: 'patch' as const, base: 7, ...head, lineage: lineages[1], patch: {} }, 'conflict'],
    [
      'a model that is none',
      { kind: 'patch' as const, base: 7, ...head, patch: { models: { c: { files: 'x' } } } },
      'invalid',
    ],
    [
      'a schema of the day after tomorrow',
      { kind: 'whole' as const, document: document('a', { schema: 9 }) },
      'invalid',
    ],
  ])('refuses %s', (_, answer, code) => {
    expect(() => readAnswer(base, answer)).toThrow(expect.objectContaining({ code }));
    expect(() => readAnswer(noDocuments, { kind: 'patch', base: 0, ...head, patch: {} })).toThrow(
      /patch on revision 0/,
    );
  });
});

describe('DocumentStore', () => {
  it('keeps both documents over a restart, readable by its user alone, and survives a torn file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'perch-documents-'));
    const path = join(folder, 'desired.json');
    const documents = after([[document('abc')], [document('a', { revision: 2, confirmed: false })]]);
    await new DocumentStore(path).save(documents);
    expect(await new DocumentStore(path).load()).toEqual({ documents });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await writeFile(path, '{"accepted": {');
    expect(await new DocumentStore(path).load()).toEqual({
      documents: noDocuments,
      fault: expect.stringContaining(path),
    });
    expect(await readdir(folder)).toEqual(['desired.json']);
    await rm(folder, { recursive: true });
  });
});
