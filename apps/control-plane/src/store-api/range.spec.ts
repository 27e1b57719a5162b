import { describe, expect, it } from 'vitest';
import { byteRange } from './range.ts';

describe('byteRange of 100 bytes', () => {
  it.each([
    [undefined, undefined],
    ['bytes=0-0', { first: 0, last: 0 }],
    ['bytes=10-19', { first: 10, last: 19 }],
    ['bytes=90-', { first: 90, last: 99 }],
    ['bytes=90-500', { first: 90, last: 99 }],
    ['bytes=-10', { first: 90, last: 99 }],
    ['bytes=-500', { first: 0, last: 99 }],
    ['bytes=100-', 'outside'],
    ['bytes=100-200', 'outside'],
    ['bytes=-0', 'outside'],
    ['bytes=20-10', undefined],
    ['bytes=0-1,5-6', undefined],
    ['bytes=-', undefined],
    ['lines=1-2', undefined],
  ])('%s', (header, range) => expect(byteRange(header, 100)).toEqual(range));

  it('of nothing is outside', () => {
    expect(byteRange('bytes=0-', 0)).toBe('outside');
    expect(byteRange('bytes=-5', 0)).toBe('outside');
  });
});
