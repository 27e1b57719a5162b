import { type DecisionInput, type Explanation, namedPolicies, type RolloutSimulation } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { explainText } from './explain.plan.ts';
import { fakeDecision, fakeEvents, fakeRollout } from './rollout.fake.ts';
import { simulationText } from './simulation.plan.ts';
import type { Paint } from './words.plan.ts';

const plain = (text: string) => text;
const paint: Paint = { bold: plain, dim: plain, green: plain, yellow: plain, red: plain, cyan: plain };
const policy = namedPolicies.default;
const input: DecisionInput = {
  policy,
  unit: 'request',
  share: 0.05,
  stage: 'shifting',
  sinceStepMs: 60_000,
  sinceEvidenceMs: 1_000,
  requestsPerMinute: 600,
  requestsPerMinuteNow: 600,
  candidateEvents: 1,
  metrics: [
    {
      metric: 'error',
      r0: 1,
      margin: { absolute: 0.005, relative: 0.2 },
      epochs: [{ epoch: 1, share: 0.05, stableEvents: 14, candidateEvents: 1 }],
      stable: { n: 12_311, x: 14 },
      candidate: { n: 640, x: 1 },
    },
  ],
  pairs: null,
};
const explanation = (given: Partial<Explanation> = {}): Explanation => ({
  rollout: fakeRollout(),
  event: { ...fakeEvents[4]!, decision: fakeDecision },
  input,
  recomputed: fakeDecision,
  agrees: true,
  sentences: ['The gap of error is 0.62 points and must come within 0.5.'],
  ...given,
});
const explained = (given: Partial<Explanation> = {}) => `\n${explainText(explanation(given), { width: 80, paint })}\n`;

describe('an explanation', () => {
  it('is sentences, the numbers behind them, and that they give the same again', () => {
    expect(explained()).toBe(`
text/minilm: version 3 to 4
step at 2026-03-01T12:26:50.000Z, event 5 by system

The gap of error is 0.62 points and must come within 0.5.

METRIC  ARM        OF REQUESTS    RATE     BOUNDS          GAP, MARGIN  E
error   stable     14 of 12,311   0.114 %  0.05 - 0.22 %
        candidate  1 of 640       0.156 %  0.001 - 0.67 %  0.62 of 0.5  0.71
slow    stable     130 of 12,290  1.06 %   0.81 - 1.37 %
        candidate  7 of 633       1.11 %   0.3 - 2.73 %    1.92 of 2    0.95

METRIC  R0  EPOCH  SHARE OF CANDIDATE  ITS EVENTS  STABLE'S EVENTS
error   1   1      5 %                 1           14

Computed again from what was stored: the same (insufficient, E 0.83 of 20).
`);
  });

  it('tells requests on their way, where they count as events of stable', () => {
    const epochs = [{ epoch: 1, share: 0.05, stableEvents: 14, candidateEvents: 1, stableOpen: 12 }];
    const metrics = input.metrics.map((metric) => ({ ...metric, epochs }));
    expect(explained({ input: { ...input, metrics } })).toMatch(/STABLE'S EVENTS {2}OF THEM ON THEIR WAY\n.* 14 +12\n/);
  });

  it('says loudly that it does not agree', () => {
    const recomputed = { ...fakeDecision, verdict: 'roll_back' as const, e: 25 };
    expect(explained({ agrees: false, recomputed })).toContain(
      'NOT the same. Stored: insufficient, E 0.83; computed: roll back, E 25 of 20.',
    );
  });

  it('says that nothing was decided', () => {
    expect(explained({ event: null, input: null, recomputed: null, sentences: [] })).toBe(
      '\ntext/minilm: version 3 to 4\n\nNothing was decided by evidence yet.\n',
    );
  });
});

const simulation: RolloutSimulation = {
  policy,
  requestsPerMinute: 3_000,
  errorRate: 0.001,
  source: "Requests as in the busiest minute of the endpoint's last day; errors as given.",
  runs: 500,
  falseRollbackRate: 0.012,
  smallestDetectable: 0.0031,
  medianPromoteMs: 660_151,
  p95PromoteMs: 784_866,
  stops: [
    { errorRate: 0.021, rolledBack: 1, medianBadRequests: 3 },
    { errorRate: 0.002, rolledBack: 0, medianBadRequests: null },
  ],
  margin: 0.005,
};
const simulated = (given: Partial<RolloutSimulation> = {}) =>
  `\n${simulationText('text/minilm', { ...simulation, ...given }, { width: 80 })}\n`;

describe('a simulation', () => {
  it('says how long, how sure and what it finds', () => {
    expect(simulated()).toBe(`
endpoint          text/minilm
ramp              auto: 1, 5, 25, 50 %
requests          3,000 a minute
errors of stable  0.1 %
margin            0.5 points
runs              500

Requests as in the busiest minute of the endpoint's last day; errors as given.

an equal version comes to its bake after  11 min (95 % of runs: 13 min 5 s)
and is promoted so much later             10 min
an equal version is rolled back in        1.2 % of runs
rolled back in 95 % of runs               from 0.31 % errors on

ERRORS OF THE CANDIDATE  ROLLED BACK  BAD REQUESTS UNTIL THEN (MEDIAN)
2.1 %                    100 %        3
0.2 %                    0 %          -
`);
  });

  it('says what it cannot find and what does not end', () => {
    const text = simulated({ smallestDetectable: null, medianPromoteMs: null, p95PromoteMs: null, stops: [] });
    expect(text).toContain('over half of the runs did not end in time');
    expect(text).toContain('no error rate below 100 %');
  });

  it('shows the weights of a clock', () => {
    const clock = { ...policy, ramp: 'clock' as const, clock: [{ weightPercent: 10, forMs: 1 }, { weightPercent: 60, forMs: 1 }] }; // biome-ignore format: a row
    expect(simulated({ policy: clock })).toContain('clock: 10, 60 %');
  });
});
