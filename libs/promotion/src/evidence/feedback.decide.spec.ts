import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { setOf } from './bucket-set.decide.ts';
import { cohortMs, type FeedbackRollout, judgeFeedback } from './feedback.decide.ts';
import { type EpochFeedback, feedbackDiffers, feedbackMetric } from './feedback.plan.ts';

const nowMs = 1_700_000_000_000;
const rollout: FeedbackRollout = {
  id: 'r1',
  endpoint: 'text/a',
  state: 'shifting',
  over: false,
  sticky: false,
  epochs: [2, 3],
  flags: [{ name: 'wrong', feedbackWithinMs: 3_600_000 }, { name: 'unsure' }],
};
const claims = { r: 'r1', e: 3, a: 'candidate' as const, b: -1, q: 'q1', iat: nowMs / 1_000 - 100 };

describe('judgeFeedback', () => {
  it('puts a reply into its stretch of time and remembers it for a day', () => {
    const taken = judgeFeedback(rollout, claims, 'wrong', nowMs);
    expect(taken).toMatchObject({ flag: 'wrong', epoch: 3, arm: 'candidate', requestId: 'q1' });
    expect(claims.iat - taken.cohortS).toBeGreaterThanOrEqual(0);
    expect(claims.iat - taken.cohortS).toBeLessThan(cohortMs(3_600_000) / 1_000);
    expect(taken.expiresS).toBe(nowMs / 1_000 + 86_400);
  });

  it('remembers a reply as long as feedback on it may still come', () => {
    const week = { ...rollout, flags: [{ name: 'wrong', feedbackWithinMs: 604_800_000 }] };
    expect(judgeFeedback(week, claims, 'wrong', nowMs).expiresS).toBeGreaterThan(claims.iat + 604_800);
  });

  it.each<[string, Partial<FeedbackRollout>, Partial<typeof claims>, string, RegExp]>([
    ['a rollout that is over', { over: true, state: 'rolled_back' }, {}, 'wrong', /rolled_back/],
    ['an earlier candidate', {}, { e: 1 }, 'wrong', /not on trial any more/],
    ['an epoch to come', {}, { e: 4 }, 'wrong', /not on trial/],
    ['a flag of processing', {}, {}, 'unsure', /feedbackWithinMs: wrong/],
    ['no flag that waits', { flags: [] }, {}, 'wrong', /feedbackWithinMs: none/],
    ['a reply of yesterday', {}, { iat: nowMs / 1_000 - 86_400 }, 'wrong', /24 h old.*within 60 min/],
    ['a reply to come', {}, { iat: nowMs / 1_000 + 61 }, 'wrong', /clocks/],
  ])('refuses %s', (_what, change, claim, flag, message) => {
    expect(() => judgeFeedback({ ...rollout, ...change }, { ...claims, ...claim }, flag, nowMs)).toThrow(message);
  });

  it.each([[1_000, 1_000], [60_000, 1_000], [3_600_000, 72_000], [604_800_000, 600_000]])('a window of %s ms has stretches of %s ms', (window, wanted) => expect(cohortMs(window)).toBe(wanted)); // biome-ignore format: one table
});

describe('feedbackDiffers', () => {
  it.each([
    ['nothing came', [1_000, 0], [1_000, 0], false],
    ['no replies', [0, 0], [0, 0], false],
    ['about as much', [10_000, 1_000], [1_000, 110], false],
    ['much more of a few', [10_000, 1_000], [10, 5], false],
    ['much more of many', [10_000, 1_000], [1_000, 250], true],
    ['much less of many', [10_000, 1_000], [1_000, 20], true],
  ] as const)('%s', (_what, [n, x], [m, y], wanted) => {
    expect(feedbackDiffers({ stable: { n, x }, candidate: { n: m, x: y } }, 0.025)).toBe(wanted);
  });

  it('is not taken in by chance, however often it is asked', () => {
    let state = 7;
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    let wrong = 0;
    for (let run = 0; run < 200; run += 1) {
      const [stable, candidate] = [
        { n: 0, x: 0 },
        { n: 0, x: 0 },
      ];
      let differs = false;
      for (let at = 1; at <= 2_000; at += 1) {
        const arm = random() < 0.25 ? candidate : stable;
        arm.n += 1;
        if (random() < 0.1) arm.x += 1;
        if (at % 20 === 0) differs ||= feedbackDiffers({ stable, candidate }, 0.025);
      }
      if (differs) wrong += 1;
    }
    expect(wrong).toBeLessThanOrEqual(10);
  });
});

describe('feedbackMetric', () => {
  const arm = (
    replies: number,
    given: number,
    raised: number,
    buckets: [number[], number[], number[]] = [[], [], []],
  ) => ({
    replies,
    given,
    raised,
    repliesSet: setOf(buckets[0]),
    givenSet: setOf(buckets[1]),
    raisedSet: setOf(buckets[2]),
  });
  const epochs = [
    { epoch: 2, share: 0.1, since: new Date(0) },
    { epoch: 3, share: 0.5, since: new Date(0) },
  ];
  const all: EpochFeedback[] = [
    { flag: 'wrong', epoch: 2, stable: arm(90, 9, 4), candidate: arm(10, 1, 1) },
    { flag: 'wrong', epoch: 3, stable: arm(50, 5, 2), candidate: arm(50, 6, 3) },
    { flag: 'other', epoch: 3, stable: arm(50, 50, 50), candidate: arm(50, 0, 0) },
  ];

  it('judges replies by what was said of them, epoch by epoch', () => {
    const { counts, reading, hold } = feedbackMetric('wrong', all, epochs, { sticky: false, a: 0.025 });
    expect(counts).toEqual({
      metric: 'wrong',
      epochs: [
        { epoch: 2, share: 0.1, stableEvents: 4, candidateEvents: 1 },
        { epoch: 3, share: 0.5, stableEvents: 2, candidateEvents: 3 },
      ],
      stable: { n: 50, x: 2 },
      candidate: { n: 50, x: 3 },
      whole: { stable: { n: 140, x: 6 }, candidate: { n: 60, x: 4 } },
    });
    expect(reading).toMatchObject({ stable: { n: 50, x: 5 }, candidate: { n: 50, x: 6 }, differs: false });
    expect(hold).toBeNull();
  });

  it('says why it holds', () => {
    expect(feedbackMetric('other', all, epochs, { sticky: false, a: 0.025 }).hold).toMatch(
      /other: feedback came back for 0 % of the candidate's replies and 100 % of stable's/,
    );
  });

  it('judges users under a sticky key, each only on its own side', () => {
    const told: EpochFeedback[] = [
      {
        flag: 'wrong',
        epoch: 3,
        stable: arm(9, 3, 2, [[7_000, 8_000, 9_000], [8_000, 1], [8_000]]),
        candidate: arm(9, 3, 2, [[1, 2], [1, 2], [1]]),
      },
    ];
    const { counts, reading } = feedbackMetric('wrong', told, epochs, { sticky: true, a: 0.025 });
    expect(counts).toMatchObject({
      epochs: [{ epoch: 3, share: 0.5, stableEvents: 1, candidateEvents: 1 }],
      stable: { n: 3, x: 1 },
      candidate: { n: 2, x: 1 },
    });
    expect(reading).toMatchObject({ stable: { n: 3, x: 1 }, candidate: { n: 2, x: 2 } });
  });

  it('never has more events than replies, whatever came in first', () => {
    const few = fc.nat(20);
    fc.assert(
      fc.property(few, few, few, (replies, given, raised) => {
        const told = [{ flag: 'wrong', epoch: 3, stable: arm(replies, given, raised), candidate: arm(0, 0, 0) }];
        const { counts, reading } = feedbackMetric('wrong', told, epochs, { sticky: false, a: 0.025 });
        expect(counts.stable.x).toBeLessThanOrEqual(counts.stable.n);
        expect(reading.stable.x).toBeLessThanOrEqual(reading.stable.n);
      }),
      { numRuns: 50 },
    );
  });
});
