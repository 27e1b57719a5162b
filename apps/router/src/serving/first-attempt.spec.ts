import { AppError, type ErrorCode, type RouteRollout } from '@perch/contracts';
import type { CompiledRollout } from '@perch/routing';
import { describe, expect, it } from 'vitest';
import type { Side } from './call.ts';
import type { EvidenceTrial, FirstOutcome } from './evidence-trial.ts';
import { FirstAttempt } from './first-attempt.ts';

const told: FirstOutcome[] = [];
const metrics = ['error', 'contract', 'sad'];

/** An attempt that began at 1,000 ms and has 200. */
function attempt(side: Side, judgesLate = true): FirstAttempt {
  told.length = 0;
  const rollout = {
    spec: { metrics } as RouteRollout,
    stable: { deployment: 's' },
    candidate: { deployment: 'c' },
  } as CompiledRollout;
  const trial = { side, startedAt: 1_000, firstOutcome: (outcome: FirstOutcome) => told.push(outcome) };
  return new FirstAttempt(rollout, trial as unknown as EvidenceTrial, 200, { replaceable: true, judgesLate });
}
const failure = (code: ErrorCode) => new AppError(code, 'no');

describe('the outcome of a first attempt', () => {
  it.each([
    ['upstream', 'failed'],
    ['timeout', 'failed'],
    ['unavailable', 'failed'],
    ['internal', 'failed'],
    ['invalid', 'refused'],
    ['too_large', 'refused'],
    ['rate_limited', 'refused'],
    ['cancelled', 'left'],
  ] as const)('%s: %s', (code, outcome) => {
    attempt('candidate').failed(failure(code), 1_050);
    expect(told).toEqual([{ outcome, durationMs: 50 }]);
  });

  it('knows nothing of an error that has no code: it failed', () => {
    attempt('candidate').failed(new TypeError('x is undefined'), 1_050);
    expect(told[0]!.outcome).toBe('failed');
  });

  it('is told once: what happens after it changes nothing', () => {
    const first = attempt('candidate');
    first.failed(failure('upstream'), 1_010);
    first.judged(true);
    first.flag('sad');
    first.answered(1_020);
    first.failed(failure('invalid'), 1_030);
    first.left(1_040);
    expect(told).toEqual([{ outcome: 'failed', durationMs: 10 }]);
  });

  it('goes by the time to the first event of a stream, which nobody replaces and nothing cuts', () => {
    const first = attempt('candidate');
    first.cut();
    first.begun(1_090);
    expect([first.replaceable, first.remainingMs(1_150, 50)]).toEqual([false, 50]);
    first.answered(1_190);
    expect(told).toEqual([{ outcome: 'answered', durationMs: 90 }]);
    const late = attempt('stable');
    late.begun(1_110);
    late.answered(1_120);
    expect(told).toEqual([{ outcome: 'failed', durationMs: 110 }]);
  });

  it('holds what was found in the reply, and each flag of the policy once', () => {
    const first = attempt('stable');
    first.judged(false);
    for (const flag of ['sad', 'other', 'sad']) first.flag(flag);
    first.answered(1_020);
    expect(told).toEqual([{ outcome: 'answered', durationMs: 20, broken: false, flags: new Set(['sad']) }]);
    attempt('stable').answered(1_020);
    expect(told).toEqual([{ outcome: 'answered', durationMs: 20 }]);
  });

  it.each(['stable', 'candidate'] as const)(
    'is a failure on %s beyond half of the time, where stable could have the other half',
    (side) => {
      attempt(side).answered(1_100);
      expect(told[0]!.outcome).toBe('answered');
      attempt(side).answered(1_101);
      expect(told[0]!.outcome).toBe('failed');
      attempt(side, false).answered(1_199);
      expect(told[0]!.outcome).toBe('answered');
    },
  );
});

describe('the time of a first attempt', () => {
  it('is the request’s own until it is cut to half', () => {
    const first = attempt('candidate');
    expect(first.remainingMs(1_010, 190)).toBe(190);
    first.cut();
    expect(first.remainingMs(1_010, 190)).toBe(90);
    expect(first.remainingMs(1_010, 40)).toBe(40);
    expect(() => first.remainingMs(1_100, 100)).toThrow(expect.objectContaining({ code: 'timeout' }));
  });

  it('is the request’s own again once stable answers, or no server of its arm took it', () => {
    for (const pass of [
      (first: FirstAttempt) => first.fallsBack('late'),
      (first: FirstAttempt) => first.passedOn(failure('unavailable'), 1_001),
    ]) {
      const first = attempt('candidate');
      first.cut();
      pass(first);
      expect(first.remainingMs(1_100, 100)).toBe(100);
    }
  });

  it('leaves the body to be used again only when nothing needs it any more', () => {
    const first = attempt('stable');
    expect(first.keepsBody).toBe(false);
    first.shadowed = true;
    expect(first.keepsBody).toBe(true);
    const failed = attempt('candidate');
    failed.failed(failure('upstream'), 1_010);
    expect(failed.keepsBody).toBe(true);
  });
});
