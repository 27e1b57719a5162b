import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterEnd, type BreakerState, closedForMs, freshBreaker } from './breaker.decide.ts';
import { chooseCell, wantsMore } from './choice.decide.ts';
import { type CellEnd, culpritOf, type EndedJob, verdictOf } from './verdict.decide.ts';

const endsAt = (...times: number[]): BreakerState => times.reduce((state, at) => afterEnd(state, at), freshBreaker);

describe('when cells of a module are started again', () => {
  it.each([
    ['a single end', [0], 0],
    ['four ends at once', [0, 0, 0, 0], 0],
    ['five ends within half a minute', [0, 1_000, 2_000, 3_000, 4_000], 1_000],
    ['five ends over a longer time', [0, 10_000, 20_000, 30_001, 40_002], 0],
    ['one more right after that', [0, 0, 0, 0, 0, 1_100], 2_000],
    ['and one more', [0, 0, 0, 0, 0, 1_100, 3_200], 4_000],
    ['one more after a minute without', [0, 0, 0, 0, 0, 70_000], 0],
  ])('%s', (_what, times, closedMs) => {
    expect(closedForMs(endsAt(...times), times.at(-1)!)).toBe(closedMs);
  });

  it('never waits longer than 30 s, and never keeps more than the ends of half a minute', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 90_000 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(gaps, (steps) => {
        let now = 0;
        let state = freshBreaker;
        for (const step of steps) {
          now += step;
          state = afterEnd(state, now);
          expect(closedForMs(state, now)).toBeLessThanOrEqual(30_000);
          expect(state.endedAtMs.every((at) => now - at <= 30_000)).toBe(true);
        }
      }),
    );
  });
});

describe('which cell takes a call', () => {
  const cell = (calls: number, stuckMs = 0, busyShare = 0) => ({ calls, stuckMs, busyShare });
  it.each([
    ['none', [], -1],
    ['the one there is', [cell(9)], 0],
    ['the one with the fewest calls', [cell(3), cell(1), cell(2)], 1],
    ['the first of equals', [cell(1), cell(1)], 0],
    ['not the one that stands still', [cell(1, 500), cell(7)], 1],
    ['one that stands still, where all do', [cell(4, 500), cell(2, 500)], 1],
  ])('%s', (_what, cells, place) => expect(chooseCell(cells)).toBe(place));

  it.each([
    ['there is none', [], 4, false],
    ['one is idle', [cell(1, 0, 0.1), cell(1, 0, 0.99)], 4, false],
    ['all are busy', [cell(1, 0, 0.9), cell(1, 0, 0.99)], 4, true],
    ['all stand still', [cell(1, 100)], 4, true],
    ['there are as many as may be', [cell(1, 100)], 1, false],
  ])('another one when %s: %s of at most %i', (_what, cells, most, wanted) =>
    expect(wantsMore(cells, most)).toBe(wanted),
  );
});

describe('what becomes of a call whose cell ended', () => {
  const end = (fields: Partial<CellEnd> = {}): CellEnd => ({ words: 'process.exit(1)', kind: 'worker', running: 0, ran: [], lastBegun: 9, ...fields }); // biome-ignore format: one row
  const job = (fields: Partial<EndedJob> = {}): EndedJob => ({ id: 5, hook: 'preprocess', tries: 0, overdue: false, ...fields }); // biome-ignore format: one row

  it.each([
    ['nobody', end(), undefined],
    ['whose hook ran', end({ running: 5, ran: [4] }), 5],
    ['the only one of the turn', end({ ran: [4] }), 4],
    ['none of several', end({ ran: [4, 5] }), undefined],
  ])('at fault is %s', (_what, given, wanted) => expect(culpritOf(given)).toBe(wanted));

  it.each([
    ['at fault', job(), end({ running: 5 }), 'module'],
    ['at fault and over its time', job({ overdue: true }), end({ running: 5 }), 'timeout'],
    ['another one is at fault', job(), end({ running: 4 }), 'again'],
    ['nobody is known to be', job(), end(), 'again'],
    ['nobody is, for the second time', job({ tries: 1 }), end(), 'module'],
    ['it had not begun, for the second time', job({ tries: 1 }), end({ lastBegun: 4 }), 'again'],
    ['process, under way', job({ hook: 'process' }), end({ running: 4 }), 'module'],
    ['process, not begun', job({ hook: 'process' }), end({ running: 4, lastBegun: 4 }), 'again'],
    ['postprocess', job({ hook: 'postprocess' }), end({ running: 4 }), 'again'],
  ])('%s', (_what, one, given, wanted) => {
    const verdict = verdictOf(one, given);
    expect(verdict.kind === 'fail' ? verdict.code : verdict.kind).toBe(wanted);
  });

  it('is never tried again for ever: each end after it has begun counts', () => {
    const hook = fc.constantFrom('preprocess' as const, 'postprocess' as const);
    fc.assert(
      fc.property(hook, fc.integer({ min: 0, max: 3 }), (one, tries) => {
        const verdict = verdictOf(job({ hook: one, tries }), end());
        expect(verdict).toMatchObject(tries === 0 ? { kind: 'again', tries: 1 } : { kind: 'fail' });
      }),
    );
  });
});
