import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  EvidenceSum,
  nullRatio,
  ratioCount,
  rollbackEvidence,
  type SplitCounts,
  theta,
} from './rollback-evidence.decide.ts';

const epoch = (share: number, stableEvents: number, candidateEvents: number): SplitCounts => ({
  share,
  stableEvents,
  candidateEvents,
});

/** The formula as the definition writes it, with r_k from 1.05·r0 to 30·r0. */
function asDefined(epochs: SplitCounts[], r0: number): number {
  let sum = 0;
  for (let k = 0; k < ratioCount; k += 1) {
    const rk = 1.05 * r0 * (30 / 1.05) ** (k / 23);
    let logL = 0;
    for (const { share: w, stableEvents, candidateEvents } of epochs)
      logL +=
        candidateEvents * Math.log(theta(w, rk) / theta(w, r0)) +
        stableEvents * Math.log((1 - theta(w, rk)) / (1 - theta(w, r0)));
    sum += Math.exp(logL);
  }
  return Math.log(sum / ratioCount);
}

const share = fc.double({ min: 0.001, max: 0.99, noNaN: true });
const some = fc.integer({ min: 0, max: 30 });
const epochs = fc.array(
  fc.tuple(share, some, some).map(([w, x, y]) => epoch(w, x, y)),
  { maxLength: 5 },
);
const ratio = fc.constantFrom(1, 1.25);

describe('rollbackEvidence', () => {
  it('is 1 without events, and where one arm has everything', () => {
    expect(rollbackEvidence([], 1)).toBeCloseTo(0, 12);
    expect(rollbackEvidence([epoch(0.25, 0, 0), epoch(0, 9, 0), epoch(1, 0, 9)], 1.25)).toBeCloseTo(0, 12);
  });

  it('is the mean of the likelihood ratios', () => {
    fc.assert(
      fc.property(epochs, ratio, (given, r0) => {
        expect(rollbackEvidence(given, r0)).toBeCloseTo(asDefined(given, r0), 8);
      }),
    );
  });

  it('is a martingale: the mean over the arm of the next event is what it was', () => {
    fc.assert(
      fc.property(epochs, share, ratio, (given, w, r0) => {
        const now = rollbackEvidence(given, r0);
        const candidate = Math.exp(rollbackEvidence([...given, epoch(w, 0, 1)], r0) - now);
        const stable = Math.exp(rollbackEvidence([...given, epoch(w, 1, 0)], r0) - now);
        expect(theta(w, r0) * candidate + (1 - theta(w, r0)) * stable).toBeCloseTo(1, 9);
      }),
    );
  });

  it('rises with each event of the candidate, falls with each of stable, whatever the order of the epochs', () => {
    fc.assert(
      fc.property(epochs, share, ratio, (given, w, r0) => {
        const now = rollbackEvidence(given, r0);
        expect(rollbackEvidence([...given, epoch(w, 0, 1)], r0)).toBeGreaterThan(now);
        expect(rollbackEvidence([...given, epoch(w, 1, 0)], r0)).toBeLessThan(now);
        expect(rollbackEvidence([...given].reverse(), r0)).toBeCloseTo(now, 9);
      }),
    );
  });

  it('is safe with a billion events on either side', () => {
    expect(rollbackEvidence([epoch(0.5, 0, 1e9)], 1)).toBeGreaterThan(6e8);
    expect(rollbackEvidence([epoch(0.5, 1e9, 0)], 1)).toBeLessThan(-2e7);
    expect(Number.isFinite(rollbackEvidence([epoch(0.01, 9.9e8, 1e7)], 1))).toBe(true);
  });

  it('comes out the same when counts are added as they come, and never above its bound', () => {
    fc.assert(
      fc.property(epochs, ratio, (given, r0) => {
        const sum = new EvidenceSum(r0);
        for (const { share: w, stableEvents, candidateEvents } of given) {
          sum.add(w, stableEvents, 0);
          sum.add(w, 0, candidateEvents);
        }
        expect(sum.log()).toBeCloseTo(rollbackEvidence(given, r0), 9);
        expect(sum.log()).toBeLessThanOrEqual(sum.atMost() + 1e-9);
      }),
    );
  });
});

describe('nullRatio', () => {
  it.each([
    ['error', { n: 10_000, x: 49 }, 1],
    ['error', { n: 10_000, x: 50 }, 1.25],
    ['contract', { n: 10_000, x: 0 }, 1],
    ['low_confidence', { n: 100, x: 40 }, 1.25],
    ['slow', { n: 10_000, x: 0 }, 1.25],
    ['error', { n: 0, x: 0 }, 1.25],
    ['error', null, 1.25],
  ])('of %s after %j', (metric, history, wanted) => expect(nullRatio(metric, history)).toBe(wanted));
});
