import { AppError } from '@perch/contracts';

const tickMs = 25;

/**
 * Requests that wait for a ready server: a bounded number, of which each endpoint may take a part, all woken by one timer
 * or by a server that came back.
 */
export class WaitingRoom {
  private readonly seats: number;
  private readonly seatsEach: number;
  private waiting: (() => void)[] = [];
  private readonly taken = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;

  constructor(seats: number, seatsEach: number) {
    this.seats = seats;
    this.seatsEach = seatsEach;
  }

  get size(): number {
    return this.waiting.length;
  }

  /** Resolves when it is worth looking again. Throws `unavailable` when every seat is taken. */
  wait(endpoint: string): Promise<void> {
    const taken = this.taken.get(endpoint) ?? 0;
    if (this.waiting.length >= this.seats || taken >= this.seatsEach)
      throw new AppError('unavailable', `no server of ${endpoint} is ready and too many requests wait already`, {
        retryAfterMs: 1_000,
      });
    this.taken.set(endpoint, taken + 1);
    this.timer ??= setInterval(() => this.wakeAll(), tickMs);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  wakeAll(): void {
    if (this.waiting.length === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    const woken = this.waiting;
    this.waiting = [];
    this.taken.clear();
    for (const wake of woken) wake();
  }
}
