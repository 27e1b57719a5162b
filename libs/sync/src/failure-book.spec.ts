import { describe, expect, it } from 'vitest';
import { FailureBook } from './failure-book.ts';

describe('FailureBook', () => {
  const retryAt = (book: FailureBook) => book.all.get('m')?.retryAtMs;

  it('waits longer after each try, up to half a minute, and starts anew with a new digest', () => {
    const book = new FailureBook(() => 1);
    const waits = Array.from({ length: 8 }, () => {
      book.postpone('m', 'd', 'cut', 0);
      return retryAt(book);
    });
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    book.postpone('m', 'other', 'cut', 0);
    expect(retryAt(book)).toBe(500);
    expect(book.nextRetryMs()).toBe(500);
  });

  it('keeps through a new Triton what ended the old one', () => {
    const book = new FailureBook();
    book.giveUp('m', 'd', 'crashes its server', true);
    book.clearRefusals();
    expect(book.all.get('m')).toMatchObject({ retryAtMs: null, reason: 'crashes its server' });
    expect(book.nextRetryMs()).toBeUndefined();
  });

  it('forgets refusals of a Triton that is gone', () => {
    const book = new FailureBook();
    book.giveUp('m', 'd', 'bad graph');
    book.clearRefusals();
    expect(book.all.size).toBe(0);
  });
});
