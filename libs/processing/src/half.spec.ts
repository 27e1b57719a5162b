import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromBrainHalves, fromHalves, toBrainHalves, toHalves } from './half.ts';

const every = Uint16Array.from({ length: 65_536 }, (_, i) => i);
const isNumber = (value: number) => !Number.isNaN(value);

describe('halves', () => {
  it.each([
    ['FP16', toHalves, fromHalves],
    ['BF16', toBrainHalves, fromBrainHalves],
  ] as const)('%s: every one reads back as itself', (_name, to, from) => {
    const values = from(every);
    const again = to(values);
    for (let i = 0; i < every.length; i++)
      if (isNumber(values[i]!)) expect(again[i]).toBe(i);
      else expect(isNumber(from(again.subarray(i, i + 1))[0]!)).toBe(false);
  });

  // figures from the tables of IEEE 754 and of NumPy's float16
  it.each([
    [1, 0x3c00], [-2, 0xc000], [65_504, 0x7bff], [65_519.996, 0x7bff], [65_520, 0x7c00], [2 ** -24, 0x0001],
    [2 ** -25, 0x0000], [2 ** -25 * 1.0001, 0x0001], [2 ** -14, 0x0400], [1 / 3, 0x3555], [2_049, 0x6800], [2_051, 0x6802],
    [Number.NEGATIVE_INFINITY, 0xfc00], [-0, 0x8000],
  ])('%d is %i', (value, half) => {
    expect(toHalves([value])[0]).toBe(half);
  }); // biome-ignore format: a table

  it.each([
    ['FP16', toHalves, fromHalves, 65_504],
    ['BF16', toBrainHalves, fromBrainHalves, 3.38e38],
  ] as const)('%s: takes the nearest one, the even one of two', (_name, to, from, most) => {
    fc.assert(
      fc.property(
        fc.float({ noNaN: true, noDefaultInfinity: true, max: Math.fround(most), min: Math.fround(-most) }),
        (value) => {
          const half = to([value])[0]!;
          const got = from(Uint16Array.of(half))[0]!;
          for (const near of [half - 1, half + 1]) {
            if (near < 0 || near > 0xffff) continue;
            const other = from(Uint16Array.of(near))[0]!;
            if (!Number.isFinite(other)) continue;
            const nearer = Math.abs(other - value) - Math.abs(got - value);
            expect(nearer === 0 && other !== got ? half & 1 : nearer < 0 ? 1 : 0).toBe(0);
          }
        },
      ),
    );
  });
});
