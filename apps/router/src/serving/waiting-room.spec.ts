import { afterEach, describe, expect, it, vi } from 'vitest';
import { WaitingRoom } from './waiting-room.ts';

describe('WaitingRoom', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('wakes everybody at the next tick, and stops its timer when nobody waits', async () => {
    vi.useFakeTimers();
    const room = new WaitingRoom(10, 10);
    const woken: string[] = [];
    for (const name of ['a', 'b']) void room.wait('e').then(() => woken.push(name));
    await vi.advanceTimersByTimeAsync(24);
    expect(woken).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect([woken, room.size, vi.getTimerCount()]).toEqual([['a', 'b'], 0, 1]);
    await vi.advanceTimersByTimeAsync(25);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('wakes everybody at once when somebody says so', async () => {
    const room = new WaitingRoom(10, 10);
    const waiting = [room.wait('e'), room.wait('f')];
    room.wakeAll();
    await Promise.all(waiting);
    room.wakeAll();
  });

  it('has a bounded number of seats, and leaves some to other endpoints', async () => {
    const room = new WaitingRoom(4, 3);
    const waiting = [room.wait('e'), room.wait('e'), room.wait('e')];
    expect(() => room.wait('e')).toThrow(/no server of e is ready and too many requests wait/);
    waiting.push(room.wait('f'));
    expect(() => room.wait('g')).toThrow(expect.objectContaining({ code: 'unavailable', retryAfterMs: 1_000 }));
    room.wakeAll();
    await Promise.all(waiting);
    const again = room.wait('e');
    expect(room.size).toBe(1);
    room.wakeAll();
    await again;
    room.wakeAll();
  });
});
