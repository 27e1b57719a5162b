import fc from 'fast-check';
import { expect, it } from 'vitest';
import { UsualTime } from './usual-time.ts';

const after = (...times: number[]): number => {
  const usual = new UsualTime();
  for (const ms of times) usual.add(ms);
  return usual.mostMs;
};

it('knows nothing before the first, and is careful after it', () => {
  expect(after()).toBe(0);
  expect(after(100)).toBe(300);
});

it('comes near what is steady, and is moved little by one that is not', () => {
  const steady = new Array<number>(300).fill(100);
  expect(after(...steady)).toBeCloseTo(100, 0);
  expect(after(...steady, 5_000)).toBeLessThan(1_000);
  expect(after(...steady, ...new Array<number>(300).fill(600))).toBeGreaterThan(600);
});

it('lies above most of what came, whatever the scale', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.01, max: 1e4, noNaN: true }),
      fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
      (scale, draws) => {
        const times = [...draws.take(200)].map((draw) => scale * (1 + draw));
        const most = after(...times);
        expect(times.filter((ms) => ms <= most).length).toBeGreaterThanOrEqual(150);
        expect(most).toBeLessThan(scale * 8);
      },
    ),
    { seed: 7 },
  );
});
