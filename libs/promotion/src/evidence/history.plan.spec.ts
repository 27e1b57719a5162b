import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dayOf } from './day.plan.ts';
import { type CountSight, type Cumulative, grownSince, planHistory } from './history.plan.ts';

const counts = (requests: number, change: Partial<Cumulative> = {}): Cumulative => ({
  router: 'r1',
  endpoint: 'text/a',
  version: 1,
  bootId: 'b1',
  requests,
  errors: 0,
  latency: [requests],
  ...change,
});
const sight = (now: Cumulative, mark: Cumulative | null): CountSight => ({ ...now, mark });

describe('grownSince', () => {
  it.each<[string, Cumulative, Cumulative | null, number]>([
    ['the first look', counts(10), null, 10],
    ['more of the same boot', counts(10), counts(4), 6],
    ['nothing new', counts(4), counts(4), 0],
    ['another boot counts from 0', counts(3, { bootId: 'b2' }), counts(10), 3],
    ['fewer of the same boot: a restored database knew more', counts(3), counts(10), 3],
  ])('%s', (_what, now, mark, requests) => {
    expect(grownSince(sight(now, mark))).toMatchObject({ requests, latency: [requests] });
  });
});

describe('planHistory', () => {
  it('only notes where an endpoint stands that was never looked at', () => {
    const plan = planHistory([sight(counts(10), null)], new Map());
    expect(plan).toMatchObject({ hours: [], peaks: [], marks: [{ requests: 10 }] });
  });

  it('adds up routers, keeps versions apart, and takes all of them for the rate', () => {
    const sights = [
      sight(counts(10), counts(4)),
      sight(counts(5, { router: 'r2' }), null),
      sight(counts(7, { version: 2 }), null),
    ];
    const plan = planHistory(sights, new Map([['text/a', 30_000]]));
    expect(plan.hours.map(({ version, requests }) => [version, requests])).toEqual([
      [1, 11],
      [2, 7],
    ]);
    expect(plan.peaks).toEqual([{ endpoint: 'text/a', perMinute: 36 }]);
  });

  it('takes no rate from a moment, and none of a long silence for one minute', () => {
    const of = (spanMs: number) => planHistory([sight(counts(60), counts(0))], new Map([['text/a', spanMs]])).peaks;
    expect(of(5_000)).toEqual([]);
    expect(of(3_600_000)).toEqual([{ endpoint: 'text/a', perMinute: 1 }]);
  });

  /** Routers count up and begin anew; looks come at any time. */
  it('notes each request at most once, and all that the looks could see', () => {
    const step = fc.record({ more: fc.nat(50), again: fc.boolean(), look: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let [now, mark, boot, noted, true_, lost] = [0, null as Cumulative | null, 1, 0, 0, 0];
        for (const { more, again, look } of steps) {
          if (again) {
            lost += now - (mark?.bootId === `b${boot}` ? mark.requests : 0); // nobody looked before it ended
            [now, boot] = [0, boot + 1];
          }
          [now, true_] = [now + more, true_ + more];
          if (!look) continue;
          const plan = planHistory([sight(counts(now, { bootId: `b${boot}` }), mark)], new Map([['text/a', 60_000]]));
          noted += plan.hours[0]?.requests ?? 0;
          mark = plan.marks[0]!;
        }
        const unseen = now - (mark?.bootId === `b${boot}` ? mark.requests : 0);
        expect(noted).toBe(true_ - lost - unseen);
      }),
      { numRuns: 200 },
    );
  });
});

describe('dayOf', () => {
  const hours = [{ endpoint: 'text/a', version: 1, requests: 100, errors: 2, latency: [100] }];
  it('adds what came in since the last look', () => {
    const day = dayOf({ hours, current: [sight(counts(30), counts(10))], peak: 50, spanMs: 30_000 }, 1);
    expect(day).toEqual({ requests: 120, errors: 2, latency: [120], perMinute: 50 });
  });
  it('takes a busy moment just now for the busiest minute', () => {
    expect(dayOf({ hours, current: [sight(counts(900), counts(0))], peak: 50, spanMs: 90_000 }, 1).perMinute).toBe(600);
  });
  it('without a look takes all of it for one minute', () => {
    expect(dayOf({ hours: [], current: [sight(counts(900), null)], peak: null, spanMs: null }, 1).perMinute).toBe(900);
  });
});
