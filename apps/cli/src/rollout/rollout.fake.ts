import type { Decision, Rollout, RolloutEvent } from '@perch/contracts';
import { rollout } from '@perch/contracts';

const minute = 60_000;
export const fakeNow = Date.parse('2026-03-01T12:30:00.000Z');
const ago = (ms: number) => new Date(fakeNow - ms).toISOString();

export const fakeDecision: Decision = {
  verdict: 'insufficient',
  share: 0.05,
  next: 'stay',
  reasons: ['The gap of error is 0.62 points and must come within 0.5.'],
  e: 0.83,
  threshold: 20,
  readings: [
    {
      metric: 'error',
      stable: { n: 12_311, x: 14, lower: 0.0005, upper: 0.0022 },
      candidate: { n: 640, x: 1, lower: 0.00001, upper: 0.0067 },
      gap: 0.0062,
      margin: 0.005,
      e: 0.71,
      weight: 0.5,
    },
    {
      metric: 'slow',
      stable: { n: 12_290, x: 130, lower: 0.0081, upper: 0.0137 },
      candidate: { n: 633, x: 7, lower: 0.003, upper: 0.0273 },
      gap: 0.0192,
      margin: 0.02,
      e: 0.95,
      weight: 0.25,
    },
  ],
  nextStepInMs: 130_000,
};

/** A rollout in the middle of its way; what a test is about is given. */
export const fakeRollout = (given: Partial<Rollout> = {}): Rollout => ({
  ...rollout.parse({
    id: '0190f3a1-0000-7000-8000-000000000001',
    endpoint: 'text/minilm',
    state: 'shifting',
    run: 'running',
    heldBy: null,
    reason: 'The gap of error is 0.62 points and must come within 0.5.',
    stable: { deployment: 'a', version: 3, digest: 'aa' },
    candidate: { deployment: 'b', version: 4, digest: 'bb' },
    policy: {},
    sticky: false,
    epoch: 2,
    weightPercent: 5,
    restarts: 0,
    queuedVersion: null,
    startedAt: ago(12 * minute),
    startedBy: 'system',
    stepAt: ago(3 * minute + 10_000),
    endedAt: null,
    decision: fakeDecision,
    pairs: null,
    fallbacks: 3,
  }),
  ...given,
});

const event = (id: number, at: number, type: string, message: string, actor = 'system'): RolloutEvent => ({
  id,
  rollout: '0190f3a1-0000-7000-8000-000000000001',
  at: ago(at),
  type,
  actor,
  message,
  decision: null,
});

export const fakeEvents: readonly RolloutEvent[] = [
  event(1, 12 * minute, 'started', 'Version 4 was published; stable is version 3.'),
  event(2, 11 * minute, 'stage', 'Ready and proven on 2 of 2 servers; 1 % of requests go to version 4.'),
  event(3, 6 * minute, 'held', 'Paused to look at dashboards.', 'ann (pk_1)'),
  event(4, 5 * minute, 'resumed', 'Goes on.', 'ann (pk_1)'),
  event(5, 3 * minute + 10_000, 'step', '5 % of requests: the gap of every metric allows it.'),
];
