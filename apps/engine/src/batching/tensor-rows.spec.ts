import { bytesOfElements } from '@perch/triton/server';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinRows, splitRows } from './tensor-rows.ts';

describe('rows of tensors', () => {
  it('are cut as they were joined, fixed sizes and texts alike', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }),
        fc.nat(3),
        fc.boolean(),
        fc.infiniteStream(fc.uint8Array({ maxLength: 5 })),
        (rows, inner, texts, random) => {
          const pieces = rows.map((count) => {
            const elements = Array.from({ length: count * inner }, () => random.next().value as Uint8Array);
            const bytes = texts ? bytesOfElements(elements) : new Uint8Array(count * inner * 4).fill(count);
            return { name: 'x', datatype: texts ? 'BYTES' : 'FP32', shape: [count, inner], bytes };
          });
          const joined = joinRows(pieces);
          expect(joined.shape).toEqual([rows.reduce((a, b) => a + b, 0), inner]);
          const cut = splitRows(joined, rows)!;
          expect(cut.map(({ shape, bytes }) => [shape, [...bytes]])).toEqual(
            pieces.map(({ shape, bytes }) => [shape, [...bytes]]),
          );
        },
      ),
    );
  });

  it('are not cut when their count is another', () => {
    const tensor = { name: 'y', datatype: 'FP32', shape: [3, 1], bytes: new Uint8Array(12) };
    expect(splitRows(tensor, [1, 1])).toBeUndefined();
  });

  it('get memory of their own, even of one tensor, so that it can be handed to a thread', () => {
    const large = new Uint8Array(64);
    const one = joinRows([{ name: 'x', datatype: 'UINT8', shape: [1, 4], bytes: large.subarray(8, 12) }]);
    expect(one.bytes.buffer.byteLength).toBe(4);
  });
});
