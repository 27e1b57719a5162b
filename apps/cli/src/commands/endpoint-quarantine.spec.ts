import { describe, expect, it } from 'vitest';
import { quarantineText } from './endpoint-quarantine.ts';

describe('what rollouts refused', () => {
  it('is a table with as much of the digest as a release wants', () => {
    const entry = {
      endpoint: 'text/a', digest: '3f9c01d2a77b45ef', version: 8, reason: 'its errors are 30 times those of version 7', rollout: 'r1',
      since: '2026-01-01T00:00:00.000Z',
    }; // biome-ignore format: one record
    const text = quarantineText([entry], 'text/a', Date.parse('2026-01-01T02:00:00.000Z'));
    expect(text).toMatch(/version +digest +since +reason +rollout/i);
    expect(text).toMatch(/8 +3f9c01d2a77b +2 h ago +its errors are 30 times those of version 7 +r1/);
    expect(text).not.toContain('45ef');
  });
  it('is a sentence where there is nothing', () =>
    expect(quarantineText([], 'text/a', 0)).toBe('Rollouts of endpoint text/a refused nothing.'));
});
