import { describe, expect, it } from 'vitest';
import { PartQueue } from './part-queue.ts';
import { SlabPool } from './slab-pool.ts';

describe('a part that is full', () => {
  it('says so in the middle, and never behind its last byte', () => {
    const part = new PartQueue({ from: 0, end: 30 }, 10, new SlabPool());
    expect(part.push(new Uint8Array(9))).toBe(true);
    expect(part.push(new Uint8Array(9))).toBe(false);
    expect(part.push(new Uint8Array(12))).toBe(true);
    part.abandon();
  });
});
