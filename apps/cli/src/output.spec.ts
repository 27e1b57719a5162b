import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { factsText, renderShown, said, shownList } from './output.ts';

const items = [
  { name: 'text/minilm', serving: [2, 1], note: '' },
  { name: 'iris', serving: [], note: 'a\u001b[31mred' },
];
const shown = shownList(
  items,
  [
    ['endpoint', ({ name }) => name],
    ['serving', ({ serving }) => serving],
    ['note', ({ note }) => note],
  ],
  'none yet',
);

describe('output', () => {
  it('lists as an aligned table without a frame', async () => {
    expect((await renderShown(shown, 'table')).split('\n')).toEqual([
      'ENDPOINT     SERVING  NOTE',
      'text/minilm  2, 1     -',
      'iris         -        a?[31mred',
    ]);
  });
  it('says a sentence for an empty list, and still an empty list for programs', async () => {
    const empty = shownList([], [], 'none yet');
    expect(await renderShown(empty, 'table')).toBe('none yet');
    expect(await renderShown(empty, 'json')).toBe('[]');
  });
  it('gives programs the whole value', async () => {
    expect(JSON.parse(await renderShown(shown, 'json'))).toEqual(items);
    expect(parse(await renderShown(shown, 'yaml'))).toEqual(items);
    expect(await renderShown(said({ done: true }, 'Done.'), 'table')).toBe('Done.');
  });
  it('aligns facts and leaves unknown ones out', () => {
    expect(
      factsText([
        ['phase', 'ready'],
        ['next version', undefined],
        ['tags', ['a', 'b']],
      ]),
    ).toBe('phase  ready\ntags   a, b');
  });
});
