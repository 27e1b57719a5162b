import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ChainHead, type ChainRow, ChainWalk, chainStart, rowHash } from './audit.decide.ts';

const content = fc.record({
  at: fc.constant('2026-01-02T03:04:05.678Z'),
  actor: fc.string(),
  action: fc.string(),
  subject: fc.string(),
  detail: fc.json(),
});

function chainOf(contents: Omit<ChainRow, 'id' | 'previousHash' | 'hash'>[]): ChainRow[] {
  let previousHash = chainStart;
  return contents.map((row, index) => {
    const open = { ...row, id: index + 1, previousHash };
    previousHash = rowHash(open);
    return { ...open, hash: previousHash };
  });
}
const headOf = (rows: ChainRow[]): ChainHead => ({ position: rows.length, hash: rows.at(-1)?.hash ?? chainStart });

function check(rows: ChainRow[], head = headOf(rows)) {
  const walk = new ChainWalk();
  for (const row of rows) if (!walk.take(row)) break;
  return walk.end(head);
}

describe('the chain of audit rows', () => {
  it('is intact as it was written', () => {
    fc.assert(
      fc.property(fc.array(content), (contents) => {
        expect(check(chainOf(contents))).toEqual({ intact: true, rows: contents.length, fault: null });
      }),
    );
  });

  it('shows any row that was changed, removed, doubled or moved, and names the first', () => {
    const change = fc.oneof(
      fc.record({ how: fc.constantFrom('remove', 'double', 'swap'), at: fc.nat() }),
      fc.record({ how: fc.constantFrom('actor', 'action', 'subject', 'detail', 'at', 'hash'), at: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(content, { minLength: 2 }), change, (contents, { how, at }) => {
        const rows = chainOf(contents);
        const head = headOf(rows);
        const index = at % (how === 'swap' ? rows.length - 1 : rows.length);
        if (how === 'remove') rows.splice(index, 1);
        else if (how === 'double') rows.splice(index, 0, rows[index]!);
        else if (how === 'swap') rows.splice(index, 2, rows[index + 1]!, rows[index]!);
        else rows[index] = { ...rows[index]!, [how]: `${rows[index]![how as 'actor']} ` };
        const verdict = check(rows, head);
        expect(verdict.intact).toBe(false);
        expect(verdict.fault!.id).toBe(how === 'double' ? index + 2 : index + 1);
      }),
    );
  });

  it('shows rows cut off at the end, and an end written anew', () => {
    const rows = chainOf([1, 2, 3].map((n) => ({ at: '', actor: 'a', action: 'b', subject: `${n}`, detail: '{}' })));
    expect(check(rows.slice(0, 2), headOf(rows)).fault).toEqual({ id: 3, reason: 'the rows from 3 to 3 are missing' });
    const forged = chainOf([1, 2, 9].map((n) => ({ at: '', actor: 'a', action: 'b', subject: `${n}`, detail: '{}' })));
    expect(check(forged, headOf(rows)).fault).toMatchObject({ id: 3 });
    expect(check([], headOf([]))).toEqual({ intact: true, rows: 0, fault: null });
  });

  it('keeps parts apart: moving text from one to the next gives another hash', () => {
    const row = { id: 1, at: '', previousHash: chainStart, actor: 'ab', action: 'c', subject: '', detail: '{}' };
    expect(rowHash(row)).not.toBe(rowHash({ ...row, actor: 'a', action: 'bc' }));
  });
});
