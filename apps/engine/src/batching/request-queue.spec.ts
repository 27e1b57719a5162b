import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type QueuedWork, RequestQueue, type RequestQueueOptions } from './request-queue.ts';

interface Work extends QueuedWork {
  id: number;
}
const work = (id: number, over: Partial<Work> = {}): Work => ({
  id,
  rows: 1,
  key: 'a',
  queuedAtMs: performance.now(),
  expiresAtMs: undefined,
  ...over,
});

describe('RequestQueue', () => {
  const batches: number[][] = [];
  const expired: number[] = [];
  let finish: (() => void)[] = [];

  const queueOf = (over: Partial<RequestQueueOptions<Work, string>> = {}) =>
    new RequestQueue<Work, string>({
      policy: { dynamic: true, maxRows: 4, preferredRows: [], maxDelayMs: 0 },
      instances: ['one'],
      maxQueued: 0,
      execute: (_instance, batch) => {
        batches.push(batch.map(({ id }) => id));
        return new Promise((resolve) => finish.push(resolve));
      },
      onExpired: ({ id }) => expired.push(id),
      ...over,
    });
  const finishOne = async () => {
    finish.shift()!();
    await vi.advanceTimersByTimeAsync(0);
  };

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    batches.length = 0;
    expired.length = 0;
    finish = [];
  });
  afterEach(() => vi.useRealTimers());

  it('collects what comes while the instance is busy, in order', async () => {
    const queue = queueOf();
    for (const id of [1, 2, 3, 4, 5, 6]) queue.push(work(id));
    expect(batches).toEqual([[1]]);
    await finishOne();
    await finishOne();
    expect(batches).toEqual([[1], [2, 3, 4, 5], [6]]);
  });

  it('waits for company no longer than the delay', async () => {
    const queue = queueOf({ policy: { dynamic: true, maxRows: 4, preferredRows: [], maxDelayMs: 20 } });
    queue.push(work(1));
    await vi.advanceTimersByTimeAsync(10);
    queue.push(work(2));
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(10);
    expect(batches).toEqual([[1, 2]]);
  });

  it('uses every idle instance', () => {
    const queue = queueOf({
      instances: ['one', 'two'],
      policy: { dynamic: false, maxRows: 1, preferredRows: [], maxDelayMs: 0 },
    });
    for (const id of [1, 2, 3]) queue.push(work(id));
    expect(batches).toEqual([[1], [2]]);
    expect(queue.length).toBe(1);
  });

  it('refuses what it cannot hold', () => {
    const queue = queueOf({ maxQueued: 1 });
    expect([1, 2, 3].map((id) => queue.push(work(id)))).toEqual([true, true, false]);
  });

  it('drops a request whose time has come, and computes the others', async () => {
    const queue = queueOf();
    queue.push(work(1));
    queue.push(work(2, { expiresAtMs: performance.now() + 5 }));
    queue.push(work(3));
    await vi.advanceTimersByTimeAsync(5);
    expect(expired).toEqual([2]);
    await finishOne();
    expect(batches).toEqual([[1], [3]]);
  });

  it('is drained when nothing waits and nothing runs', async () => {
    const queue = queueOf();
    await queue.drain();
    queue.push(work(1));
    queue.push(work(2));
    const drained = vi.fn();
    void queue.drain().then(drained);
    await finishOne();
    expect(drained).not.toHaveBeenCalled();
    await finishOne();
    expect(drained).toHaveBeenCalled();
  });
});
