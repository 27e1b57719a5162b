import { type WorkerEvidence, workerEvidence } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EvidenceLedger } from './evidence-ledger.ts';

const arm = (n: number, seen?: string) => ({ ended: { error: { n, x: 0, ...(seen ? { seen } : {}) } }, closed: {} });
const evidence = (n: number, seen?: string, fields: Partial<WorkerEvidence> = {}): WorkerEvidence => ({
  rollout: 'r',
  epoch: 1,
  worker: 0,
  stable: arm(0),
  candidate: arm(n, seen),
  fallbacks: 0,
  keyless: 0,
  ...fields,
});
/** `worker n seen` of all that is taken. */
const taken = (ledger: EvidenceLedger) =>
  ledger.take()?.evidence.map((one) => {
    const { n, seen } = workerEvidence.parse(one).candidate.ended['error']!;
    return `${one.worker} ${n} ${seen ?? '-'}`;
  });

describe('evidence on its way to the control plane', () => {
  it('is sent once, a set of buckets only when it grew, and again when it was not taken', () => {
    const ledger = new EvidenceLedger();
    expect(ledger.take()).toBeUndefined();
    ledger.hear(1, [evidence(1, 'AQ==')], 0);
    const first = ledger.take()!;
    expect(first.evidence[0]).toMatchObject({ worker: 1, candidate: arm(1, 'AQ==') });
    expect(ledger.take()).toBeUndefined();
    ledger.hear(1, [evidence(2)], 0);
    ledger.again(first);
    expect(taken(ledger)).toEqual(['1 2 AQ==']);
    ledger.hear(1, [evidence(3)], 0);
    expect(taken(ledger)).toEqual(['1 3 -']);
    ledger.allAgain();
    expect(taken(ledger)).toEqual(['1 3 AQ==']);
    expect(ledger.hasNews).toBe(false);
  });
  it('is kept apart by worker, and that of an ended one stays', () => {
    const ledger = new EvidenceLedger();
    ledger.hear(1, [evidence(5)], 0);
    ledger.hear(2, [evidence(7)], 0);
    expect(taken(ledger)).toEqual(['1 5 -', '2 7 -']);
    ledger.hear(2, [evidence(8)], 1_000);
    ledger.allAgain();
    expect(taken(ledger)).toEqual(['1 5 -', '2 8 -']);
  });
  it('is cut into reports of bounded size', () => {
    const ledger = new EvidenceLedger();
    const set = 'A'.repeat(1_668);
    const many = Array.from({ length: 1_500 }, (_, at) => evidence(1, set, { rollout: `r${at}` }));
    ledger.hear(1, many, 0);
    const sizes: number[] = [];
    for (let told = ledger.take(); told; told = ledger.take()) {
      expect(JSON.stringify(told.evidence).length).toBeLessThan(2_000_000);
      sizes.push(told.evidence.length);
    }
    expect(sizes.length).toBeGreaterThan(1);
    expect(sizes.reduce((sum, one) => sum + one)).toBe(1_500);
  });
  it('is forgotten when it was told and nothing came for an hour, and not before it was told', () => {
    const ledger = new EvidenceLedger();
    ledger.hear(1, [evidence(1)], 0);
    ledger.hear(2, [], 3_600_001);
    expect(taken(ledger)).toEqual(['1 1 -']);
    ledger.hear(2, [], 3_600_001);
    ledger.allAgain();
    expect(ledger.take()).toBeUndefined();
  });
  it('arrives whole, however many reports are lost on the way', () => {
    const step = fc.record({
      grows: fc.boolean(),
      taken: fc.constantFrom('yes', 'no', 'forgotten'),
      takes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const ledger = new EvidenceLedger();
        let n = 0;
        let set = '';
        let heard: { n: number; seen: string | undefined } | undefined;
        const deliver = (how: string) => {
          const told = ledger.take();
          if (!told) return;
          if (how === 'no') return ledger.again(told);
          if (how === 'forgotten') heard = undefined;
          const { error } = told.evidence[0]!.candidate.ended;
          heard = { n: error!.n, seen: error!.seen ?? heard?.seen };
          if (how === 'forgotten') ledger.allAgain();
        };
        for (const { grows, taken: how, takes } of steps) {
          n += 1;
          if (grows) set = `A${set}`;
          ledger.hear(1, [evidence(n, grows ? set : undefined)], n);
          if (takes) deliver(how);
        }
        deliver('yes');
        expect(heard).toEqual(n > 0 ? { n, seen: set || undefined } : undefined);
        expect(ledger.hasNews).toBe(false);
      }),
    );
  });
});
