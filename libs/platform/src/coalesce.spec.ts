import { describe, expect, it } from 'vitest';
import { Coalescing } from './coalesce.ts';

describe('what is done again and again', () => {
  it('goes out at once when it was quiet, and together with what follows it closely', () => {
    const coalescing = new Coalescing(50, 400);
    expect(coalescing.waitMs('a', 0)).toBe(0);
    coalescing.note('a', 0);
    expect([coalescing.waitMs('a', 10), coalescing.waitMs('b', 10), coalescing.waitMs('a', 50)]).toEqual([40, 0, 0]);
  });

  it('waits longer the longer it is asked for all the time, up to the most, and forgets that when it is quiet', () => {
    const coalescing = new Coalescing(50, 400);
    const waits: number[] = [];
    let now = 0;
    for (let turn = 0; turn < 6; turn += 1) {
      coalescing.note('a', now);
      waits.push(coalescing.waitMs('a', now));
      now += waits.at(-1)!;
    }
    expect(waits).toEqual([50, 100, 200, 400, 400, 400]);
    now += 801;
    coalescing.note('a', now);
    expect(coalescing.waitMs('a', now)).toBe(50);
  });
});
