import { latencyBoundsMs, type RolloutPolicyInput, rolloutPolicy } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideBaseline, quantileMs, type StableDay } from './baseline.decide.ts';

const day = (change: Partial<StableDay> = {}): StableDay => ({
  requests: 10_000,
  errors: 0,
  latency: latencyBoundsMs.map((bound) => (bound === 50 ? 10_000 : 0)).concat(0),
  perMinute: 12,
  ...change,
});
const decide = (change: Partial<StableDay> = {}, policy: RolloutPolicyInput = {}, slo?: number) =>
  decideBaseline(day(change), rolloutPolicy.parse(policy), slo);

describe('decideBaseline', () => {
  it.each([
    ['no error in many', { errors: 0 }, 1],
    ['just below half a percent', { errors: 49 }, 1],
    ['half a percent', { errors: 50 }, 1.25],
    ['many errors', { errors: 900 }, 1.25],
    ['nothing at all', { requests: 0 }, 1.25],
    ['too few to say', { requests: 199, errors: 0 }, 1.25],
    ['enough to say', { requests: 200, errors: 0 }, 1],
  ])('r0 of error after %s', (_what, change, wanted) => expect(decide(change).r0['error']).toBe(wanted));

  it('is tolerant to metrics without a history, and always to slow', () => {
    const flags = [{ name: 'unsure' }];
    const provided = [{ name: 'fraud', url: 'http://p', events: 'e', totals: 't' }];
    expect(decide({}, { flags, provided }).r0).toEqual({
      error: 1,
      slow: 1.25,
      contract: 1.25,
      unsure: 1.25,
      fraud: 1.25,
    });
  });

  it.each<[string, Partial<StableDay>, RolloutPolicyInput, number | undefined, number | null, RegExp]>([
    ['the policy', {}, { slowMs: 80 }, 200, 80, /as the policy says/],
    ['the slo', {}, {}, 200, 200, /the endpoint's slo/],
    ["stable's p99", {}, {}, undefined, 75, /1.5 × stable's p99/],
    ['nothing, without history', { requests: 100 }, {}, undefined, null, /Nobody is judged by slow/],
    ['nothing, when it is off', {}, { slow: false }, 200, null, /switched off/],
  ])('takes what is slow from %s', (_what, change, policy, slo, wanted, sentence) => {
    const baseline = decide(change, policy, slo);
    expect(baseline.slowMs).toBe(wanted);
    expect(baseline.sentences.join(' ')).toMatch(sentence);
  });
});

describe('quantileMs', () => {
  it('lies between the bounds of its bucket, and grows with the share', () => {
    const counts = fc.array(fc.nat(1_000), { minLength: 27, maxLength: 27 });
    fc.assert(
      fc.property(
        counts,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (latency, a, b) => {
          const [less, more] = [quantileMs(latency, Math.min(a, b)), quantileMs(latency, Math.max(a, b))];
          if (latency.every((count) => count === 0)) return expect(less).toBeNull();
          expect(less!).toBeGreaterThanOrEqual(0);
          expect(more!).toBeLessThanOrEqual(60_000);
          expect(less!).toBeLessThanOrEqual(more!);
        },
      ),
      { numRuns: 100 },
    );
  });
  it('says no more than the last bound of what took longer', () => {
    expect(quantileMs(latencyBoundsMs.map(() => 0).concat(5), 0.99)).toBe(60_000);
  });
});
