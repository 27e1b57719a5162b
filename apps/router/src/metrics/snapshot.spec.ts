import { expect, it } from 'vitest';
import { labelText, type MetricFamily, mergeSnapshots, renderSnapshot } from './snapshot.ts';

const family = (merge: MetricFamily['merge'], samples: MetricFamily['samples']): MetricFamily => ({
  name: `m_${merge}`,
  help: 'h',
  type: 'gauge',
  merge,
  samples,
});

it('adds processes up by each family’s own rule', () => {
  const merged = mergeSnapshots([
    [
      family('sum', [
        ['a', 1],
        ['b', 2],
      ]),
      family('min', [['a', 5]]),
    ],
    [family('sum', [['a', 10]]), family('min', [['a', 3]])],
  ]);
  expect(merged.map(({ samples }) => samples)).toEqual([
    [
      ['a', 11],
      ['b', 2],
    ],
    [['a', 3]],
  ]);
  expect(renderSnapshot(merged.slice(1))).toBe('# HELP m_min h\n# TYPE m_min gauge\na 3\n');
});

it('escapes labels', () => {
  expect(labelText({ a: 'x"y\\z\n' })).toBe('a="x\\"y\\\\z\\n"');
});
