import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ServerVerdict } from './retry.decide.ts';
import { RetryBudget } from './retry-budget.ts';
import { pickUpstream, Upstream } from './upstream.ts';

const upstream = () => new Upstream({ http: 'h:1', grpc: 'h:2' }, 'm', '', { outstanding: 0 });
const attempt = (one: Upstream, verdict: ServerVerdict, now: number) => {
  one.begin(now);
  return one.end(verdict, now);
};
const pick = (all: Upstream[], now: number, tried?: Set<Upstream>) => pickUpstream(all, tried, now, Math.random);

describe('a server that fails', () => {
  it('is ejected after 5 failures in a row, for 1 s doubling to 30 s, and back after one success', () => {
    const [bad, good] = [upstream(), upstream()];
    for (let i = 0; i < 4; i += 1) attempt(bad, 'failed', 0);
    attempt(bad, 'fine', 0);
    for (let i = 0; i < 4; i += 1) attempt(bad, 'failed', 0);
    expect(bad.out).toBe('no');
    attempt(bad, 'failed', 0);
    expect([bad.out, bad.isOpen(999), bad.isOpen(1_000)]).toEqual(['ejected', false, true]);
    for (let i = 0; i < 50; i += 1) expect(pick([bad, good], 500)).toBe(good);
    let at = 1_000;
    for (const restMs of [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      attempt(bad, 'failed', at);
      expect([bad.isOpen(at + restMs - 1), bad.isOpen(at + restMs)]).toEqual([false, true]);
      at += restMs;
    }
    expect(attempt(bad, 'fine', at)).toBe(true);
    expect([bad.out, bad.isOpen(at)]).toEqual(['no', true]);
  });

  it('is probed by one request at a time', () => {
    const one = upstream();
    attempt(one, 'down', 0);
    expect([one.isOpen(10), one.isOpen(25)]).toEqual([false, true]);
    one.begin(25);
    expect(one.isOpen(1_000)).toBe(false);
    one.end('unknown', 1_000);
    expect(one.isOpen(1_000)).toBe(true);
  });

  it('is probed again when a probe gets no answer', () => {
    const one = upstream();
    attempt(one, 'down', 0);
    one.begin(25);
    expect([one.isOpen(1_024), one.isOpen(1_025)]).toEqual([false, true]);
    one.begin(1_025);
    expect(one.end('fine', 1_030)).toBe(true);
    expect(one.isOpen(1_030)).toBe(true);
  });

  it('is still used when it is the last one, unless it is down', () => {
    const one = upstream();
    for (let i = 0; i < 5; i += 1) attempt(one, 'failed', 0);
    expect(pick([one], 1)).toBe(one);
    expect(pick([one], 1, new Set([one]))).toBeUndefined();
    attempt(one, 'down', 2_000);
    expect(pick([one], 2_001)).toBeUndefined();
    expect(pick([one], 2_100)).toBe(one);
  });

  it('shares among all of them when all are ejected, so that one that is well again is found', () => {
    const all = [upstream(), upstream(), upstream()];
    for (const one of all) for (let i = 0; i < 5; i += 1) attempt(one, 'failed', 0);
    expect(new Set(Array.from({ length: 200 }, () => pick(all, 1))).size).toBe(3);
    const [down, ejected] = [upstream(), all[0]!];
    attempt(down, 'down', 0);
    for (let i = 0; i < 20; i += 1) expect(pick([down, ejected], 1)).toBe(ejected);
  });

  it('counts requests in hand exactly, whatever happens', () => {
    const verdicts = fc.constantFrom<ServerVerdict | 'unknown' | 'begin'>('fine', 'failed', 'down', 'unknown', 'begin');
    fc.assert(
      fc.property(fc.array(fc.tuple(verdicts, fc.nat(40_000))), (steps) => {
        const one = upstream();
        let running = 0;
        let now = 0;
        for (const [step, ms] of steps) {
          now += ms;
          if (step === 'begin') {
            one.begin(now);
            running += 1;
          } else if (running > 0) {
            one.end(step, now);
            running -= 1;
          }
          expect(one.load.outstanding).toBe(running);
          expect(pick([one, upstream()], now)).toBeDefined();
        }
      }),
    );
  });
});

describe('RetryBudget', () => {
  it('allows 50 in 10 s, and a fifth of many requests', () => {
    const budget = new RetryBudget();
    const take = (count: number, now: number) =>
      Array.from({ length: count }, () => budget.take(now)).filter(Boolean).length;
    expect(take(60, 0)).toBe(50);
    expect(take(1, 9_999)).toBe(0);
    expect(take(60, 10_000)).toBe(50);
    for (let i = 0; i < 1_000; i += 1) budget.countRequest(10_500);
    expect(take(300, 10_600)).toBe(150);
    expect(take(60, 1_000_000)).toBe(50);
  });
});
