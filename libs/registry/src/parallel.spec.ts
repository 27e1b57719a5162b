import { describe, expect, it } from 'vitest';
import { inParallel } from './parallel.ts';

describe('inParallel', () => {
  it('answers in order and keeps to the limit', async () => {
    let active = 0;
    let most = 0;
    const answers = await inParallel([5, 4, 3, 2, 1, 0], 2, async (ticks) => {
      most = Math.max(most, ++active);
      for (let n = 0; n < ticks; n += 1) await Promise.resolve();
      active -= 1;
      return ticks * 10;
    });
    expect(answers).toEqual([50, 40, 30, 20, 10, 0]);
    expect(most).toBe(2);
  });

  it('does nothing with nothing, and ends with the first throw', async () => {
    expect(await inParallel([], 4, async () => 1)).toEqual([]);
    const fault = new Error('third');
    await expect(
      inParallel([1, 2, 3, 4], 1, async (n) => {
        if (n === 3) throw fault;
        return n;
      }),
    ).rejects.toBe(fault);
  });
});
