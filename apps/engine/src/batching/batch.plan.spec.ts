import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BatchPolicy, type Pending, planBatch } from './batch.plan.ts';

const policy = (over: Partial<BatchPolicy> = {}): BatchPolicy => ({
  dynamic: true,
  maxRows: 8,
  preferredRows: [],
  maxDelayMs: 10,
  ...over,
});
const queue = (...rows: (number | [rows: number, key: string])[]): Pending[] =>
  rows.map((entry) => {
    const [count, key] = typeof entry === 'number' ? [entry, 'a'] : entry;
    return { rows: count, key, queuedAtMs: 100 };
  });

describe('planBatch', () => {
  it.each<[string, Pending[], Partial<BatchPolicy>, number, ReturnType<typeof planBatch>]>([
    ['nothing waits', [], {}, 100, { waitMs: Number.POSITIVE_INFINITY }],
    ['batching is off', queue(1, 1), { dynamic: false }, 100, { take: 1 }],
    ['the batch is not full and may wait', queue(1, 2), {}, 104, { waitMs: 6 }],
    ['the oldest has waited its time', queue(1, 2), {}, 110, { take: 2 }],
    ['no delay is allowed', queue(1, 2), { maxDelayMs: 0 }, 100, { take: 2 }],
    ['the batch is full', queue(4, 4, 1), {}, 100, { take: 2 }],
    ['the next does not fit', queue(5, 4), {}, 100, { take: 1 }],
    ['the next has another shape', queue(1, [1, 'b'], 1), {}, 100, { take: 1 }],
    ['a preferred size is reached', queue(1, 1, 1, 1, 1), { preferredRows: [2, 4] }, 100, { take: 4 }],
    ['no preferred size is reached yet', queue(1, 2), { preferredRows: [4] }, 100, { waitMs: 10 }],
    ['no preferred size is reached in time', queue(1, 2), { preferredRows: [4] }, 111, { take: 2 }],
    ['one request is the largest batch', queue(8, 1), {}, 100, { take: 1 }],
  ])('when %s', (_when, waiting, over, nowMs, plan) => {
    expect(planBatch(waiting, policy(over), nowMs)).toEqual(plan);
  });

  it('never mixes shapes, never exceeds the maximum, and never keeps a request beyond its delay', () => {
    const entry = fc.record({
      rows: fc.integer({ min: 1, max: 8 }),
      key: fc.constantFrom('a', 'b'),
      queuedAtMs: fc.nat(20),
    });
    fc.assert(
      fc.property(
        fc.array(entry, { minLength: 1, maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 3 }),
        fc.nat(50),
        (entries, preferredRows, nowMs) => {
          const waiting = entries.sort((a, b) => a.queuedAtMs - b.queuedAtMs);
          const plan = planBatch(waiting, policy({ preferredRows }), nowMs);
          const lateMs = nowMs - waiting[0]!.queuedAtMs - 10;
          if ('waitMs' in plan) {
            expect(lateMs).toBeLessThan(0);
            expect(plan.waitMs).toBeGreaterThan(0);
            return;
          }
          const taken = waiting.slice(0, plan.take);
          expect(taken.length).toBeGreaterThan(0);
          expect(new Set(taken.map(({ key }) => key)).size).toBe(1);
          expect(taken.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThanOrEqual(8);
        },
      ),
    );
  });
});
