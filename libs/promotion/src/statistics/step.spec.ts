import {
  type DecisionInput,
  decision as decisionSchema,
  type MetricInput,
  type PairEvidence,
  rolloutPolicy,
} from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideStep } from './step.decide.ts';

const policy = rolloutPolicy.parse({});
const margin = { absolute: 0.005, relative: 0.2 };
const metric = (fields: Partial<MetricInput> = {}): MetricInput => ({
  metric: 'error',
  r0: 1,
  margin,
  epochs: [],
  stable: { n: 0, x: 0 },
  candidate: { n: 0, x: 0 },
  ...fields,
});
const input = (fields: Partial<DecisionInput> = {}): DecisionInput => ({
  policy,
  unit: 'request',
  share: 0.05,
  stage: 'shifting',
  sinceStepMs: 60_000,
  sinceEvidenceMs: 0,
  requestsPerMinute: 30_000,
  requestsPerMinuteNow: 30_000,
  candidateEvents: 0,
  metrics: [metric()],
  pairs: null,
  ...fields,
});
const counted = (stable: [number, number], candidate: [number, number]) => [
  metric({ stable: { n: stable[0], x: stable[1] }, candidate: { n: candidate[0], x: candidate[1] } }),
];
const epoch = (stableEvents: number, candidateEvents: number) => ({
  epoch: 1,
  share: 0.05,
  stableEvents,
  candidateEvents,
});
const good = counted([30_000, 30], [30_000, 30]);
const clock = rolloutPolicy.parse({ ramp: 'clock', clock: [{ weightPercent: 5, forMs: 90_000 }] });
const steps = rolloutPolicy.parse({ ramp: 'steps', weightsPercent: [5, 20] });
const waiting = (onMaxWait: 'hold' | 'promote' | 'abort') => rolloutPolicy.parse({ onMaxWait, maxWaitMs: 60_000 });

const row = (fields: Partial<DecisionInput>, verdict: string, next: string, share: number) =>
  [fields, verdict, next, share] as const;

describe('decideStep while shifting', () => {
  it.each([
    ['no traffic', row({ requestsPerMinuteNow: 0 }, 'insufficient', 'stay', 0.05)],
    [
      'no traffic, today or ever',
      row(
        { requestsPerMinute: 0, requestsPerMinuteNow: 0, metrics: counted([0, 0], [0, 0]) },
        'insufficient',
        'stay',
        0.05,
      ),
    ],
    [
      'hardly any traffic: what it could risk is little',
      row(
        { requestsPerMinute: 0.3, requestsPerMinuteNow: 0.3, metrics: counted([1, 0], [0, 0]) },
        'advance',
        'shift',
        0.5,
      ),
    ],
    ['no metric', row({ metrics: [] }, 'insufficient', 'stay', 0.05)],
    ['little evidence', row({ metrics: counted([3_000, 3], [30, 0]) }, 'insufficient', 'stay', 0.05)],
    ['enough for a step', row({ metrics: counted([30_000, 30], [1_500, 1]) }, 'advance', 'shift', 0.5)],
    ['enough, but too soon', row({ metrics: good, sinceStepMs: 59_000 }, 'hold', 'stay', 0.05)],
    ['within the margin: bake', row({ metrics: good }, 'advance', 'bake', 0.99)],
    ['provably worse than the margin', row({ metrics: counted([30_000, 30], [30_000, 900]) }, 'hold', 'stay', 0.05)],
    [
      'and for too long',
      row(
        { metrics: counted([30_000, 30], [30_000, 900]), sinceStepMs: 3_600_000, sinceEvidenceMs: 3_600_000 },
        'hold',
        'hold',
        0.05,
      ),
    ],
    [
      'and for too long, but a person has just resumed it',
      row({ metrics: counted([30_000, 30], [30_000, 900]), sinceStepMs: 9_000_000 }, 'hold', 'stay', 0.05),
    ],
    ['something else holds it', row({ metrics: good, holds: ['Feedback differs.'] }, 'hold', 'stay', 0.05)],
    ['waited too long: hold', row({ policy: waiting('hold'), sinceEvidenceMs: 60_000 }, 'insufficient', 'hold', 0.05)],
    [
      'waited too long: promote',
      row({ policy: waiting('promote'), sinceEvidenceMs: 60_000 }, 'insufficient', 'promote', 1),
    ],
    ['waited too long: abort', row({ policy: waiting('abort'), sinceEvidenceMs: 60_000 }, 'insufficient', 'abort', 0)],
    [
      'few users',
      row({ unit: 'bucket', metrics: counted([9_500, 5], [199, 0]), share: 0.5 }, 'insufficient', 'stay', 0.5),
    ],
    ['a clock that has not run down', row({ policy: clock }, 'hold', 'stay', 0.05)],
    ['a clock that has', row({ policy: clock, sinceStepMs: 90_000 }, 'advance', 'bake', 0.99)],
    ['a step of given weights', row({ policy: steps, metrics: good }, 'advance', 'shift', 0.2)],
    ['the last of them', row({ policy: steps, share: 0.2, metrics: good }, 'advance', 'bake', 0.99)],
    [
      'traffic grew',
      row(
        { requestsPerMinute: 100, requestsPerMinuteNow: 2_000, metrics: [metric({ stepGap: 0.8 })] },
        'hold',
        'shift',
        0.01,
      ),
    ],
  ])('%s', (_name, [fields, verdict, next, share]) => {
    const decision = decideStep(input(fields));
    expect(decision).toMatchObject({ verdict, next, share });
    expect(decision.reasons.length).toBeGreaterThan(0);
  });
});

describe('decideStep rolls back', () => {
  const failing = [metric({ epochs: [epoch(0, 3)] })];
  it.each([
    ['by two distinct requests', row({ metrics: failing, candidateEvents: 2 }, 'roll_back', 'roll_back', 0)],
    ['never by one', row({ metrics: failing, candidateEvents: 1 }, 'insufficient', 'stay', 0.05)],
    [
      'also while somebody holds it',
      row({ metrics: failing, candidateEvents: 3, holds: ['x'] }, 'roll_back', 'roll_back', 0),
    ],
    ['in the bake', row({ metrics: failing, candidateEvents: 3, stage: 'baking' }, 'roll_back', 'roll_back', 0)],
    [
      'not when stable fails as often',
      row({ metrics: [metric({ epochs: [epoch(57, 3)] })], candidateEvents: 3 }, 'insufficient', 'stay', 0.05),
    ],
  ])('%s', (_name, [fields, verdict, next, share]) => {
    expect(decideStep(input(fields))).toMatchObject({ verdict, next, share, threshold: 20 });
  });

  it('names the metric that speaks loudest', () => {
    const metrics = [metric(), metric({ metric: 'contract', epochs: [epoch(0, 5)] })];
    const { verdict, reasons, readings } = decideStep(input({ metrics, candidateEvents: 5 }));
    expect(verdict).toBe('roll_back');
    expect(reasons.join(' ')).toContain('contract');
    expect(readings.map(({ weight }) => weight)).toEqual([0.75, 0.25]);
  });
});

describe('decideStep in the bake', () => {
  const bake = (fields: Partial<DecisionInput>) => input({ stage: 'baking', share: 0.99, ...fields });
  const worse = (whole: MetricInput['whole']) => [
    metric({ stable: { n: 100, x: 0 }, candidate: { n: 10_000, x: 300 }, ...(whole ? { whole } : {}) }),
  ];
  const whole = { stable: { n: 50_000, x: 50 }, candidate: { n: 0, x: 0 } };
  it.each([
    ['it lasts', bake({ sinceStepMs: 599_000 }), 'hold', 'stay', 1_000],
    ['it is over', bake({ sinceStepMs: 600_000 }), 'advance', 'promote', null],
    ['over, but held', bake({ sinceStepMs: 600_000, holds: ['x'] }), 'hold', 'stay', null],
    ['worse than stable was in the rollout', bake({ metrics: worse(whole) }), 'roll_back', 'roll_back', null],
    ['stable is hardly known', bake({ metrics: worse(undefined), sinceStepMs: 0 }), 'hold', 'stay', 600_000],
    [
      'users: a longer epoch shows more of them erring',
      bake({ unit: 'bucket', metrics: worse(whole), sinceStepMs: 0 }),
      'hold',
      'stay',
      600_000,
    ],
  ])('%s', (_name, given, verdict, next, nextStepInMs) => {
    expect(decideStep(given)).toMatchObject({ verdict, next, nextStepInMs });
  });
});

describe('decideStep while shadowing', () => {
  const shadowing = (shadow: object, pairs: Partial<PairEvidence> | null, fields: Partial<DecisionInput> = {}) =>
    input({
      stage: 'shadowing',
      share: 0,
      policy: rolloutPolicy.parse({ shadow }),
      pairs: pairs && { pairs: 0, agree: 0, compared: 0, discordant: {}, dropped: 0, ...pairs },
      ...fields,
    });
  const against = (candidate: number) => ({ discordant: { error: { stable: 0, candidate } } });
  it.each([
    ['no pairs yet', shadowing({}, null), 'insufficient', 'stay', 0],
    ['some pairs', shadowing({}, { compared: 100, agree: 99 }), 'insufficient', 'stay', 0],
    ['enough pairs', shadowing({}, { compared: 200, agree: 199 }), 'advance', 'shift', 0.01],
    ['time is over', shadowing({ mostMs: 60_000 }, null), 'advance', 'shift', 0.01],
    ['outputs differ', shadowing({ leastAgreement: 0.9 }, { compared: 200, agree: 179 }), 'hold', 'hold', 0],
    ['outputs agree', shadowing({ leastAgreement: 0.9 }, { compared: 200, agree: 180 }), 'advance', 'shift', 0.01],
    ['nothing could be compared', shadowing({ leastAgreement: 0.9, mostMs: 1_000 }, null), 'hold', 'hold', 0],
    ['only the candidate fails', shadowing({}, against(9)), 'roll_back', 'roll_back', 0],
    ['a few pairs more or less', shadowing({}, against(4)), 'insufficient', 'stay', 0],
  ])('%s', (_name, given, verdict, next, share) => {
    expect(decideStep(given)).toMatchObject({ verdict, next, share });
  });
});

describe('decideStep for any counts', () => {
  const amount = fc.constantFrom(0, 1, 2, 17, 1_000, 1e6, 1e9);
  const part = fc.double({ min: 0, max: 1, noNaN: true });
  const arm = fc.tuple(amount, part).map(([n, share]) => ({ n, x: Math.floor(n * share) }));
  const anyMetric = fc.record({
    metric: fc.constantFrom('error', 'slow', 'contract', 'flagged'),
    r0: fc.constantFrom(1, 1.25),
    margin: fc.constant(margin),
    stable: arm,
    candidate: arm,
    epochs: fc.array(fc.record({ epoch: fc.nat(9), share: part, stableEvents: amount, candidateEvents: amount }), {
      maxLength: 4,
    }),
  });
  const anyInput = fc.record({
    policy: fc.constantFrom(policy, steps, clock, waiting('abort')),
    unit: fc.constantFrom('request' as const, 'bucket' as const),
    share: fc.constantFrom(0, 0.01, 0.05, 0.25, 0.5, 0.99),
    stage: fc.constantFrom('shadowing' as const, 'shifting' as const, 'baking' as const),
    sinceStepMs: fc.nat(1e7),
    sinceEvidenceMs: fc.nat(1e7),
    requestsPerMinute: amount,
    requestsPerMinuteNow: amount,
    candidateEvents: amount,
    metrics: fc.uniqueArray(anyMetric, { selector: (one) => one.metric, maxLength: 4 }),
    pairs: fc.constant(null),
  });

  it('is a decision that survives JSON, comes out the same again, and says why', () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const decision = decideStep(given);
        expect(decisionSchema.parse(JSON.parse(JSON.stringify(decision)))).toEqual(decision);
        expect(decideStep(JSON.parse(JSON.stringify(given)))).toEqual(decision);
        expect(decision.reasons.every((reason) => reason.length > 0)).toBe(true);
        expect(decision.verdict === 'roll_back').toBe(decision.next === 'roll_back');
        if (decision.next === 'stay') expect(decision.share).toBe(given.share);
      }),
      { numRuns: 200 },
    );
  });
});
