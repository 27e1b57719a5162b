import { describe, expect, it } from 'vitest';
import { normalizeRows, poolFirst, poolMean } from './pool.ts';

/** Two texts of three tokens, the second padded after one; vectors of two numbers. */
const vectors = {
  values: Float32Array.of(1, 2, 3, 4, 5, 6, 10, 20, 99, 99, 99, 99),
  mask: Int32Array.of(1, 1, 1, 1, 0, 0),
  texts: 2,
  tokens: 3,
  size: 2,
};

describe('pooling', () => {
  it('averages the tokens that the mask keeps', () => {
    expect([...poolMean(vectors)]).toEqual([3, 4, 10, 20]);
  });

  it('takes the first token', () => {
    expect([...poolFirst(vectors)]).toEqual([1, 2, 10, 20]);
  });

  it('gives zeros for a text without tokens, and leaves zeros alone', () => {
    const rows = poolMean({ ...vectors, mask: new Int32Array(6) });
    expect([...normalizeRows(rows, 2)]).toEqual([0, 0, 0, 0]);
  });

  it('scales each row to length 1', () => {
    const rows = normalizeRows(Float32Array.of(3, 4, 0, -2), 2);
    expect([...rows].map((value) => Math.fround(value))).toEqual([0.6, 0.8, 0, -1].map(Math.fround));
  });
});
