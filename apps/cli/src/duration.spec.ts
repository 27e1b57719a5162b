import { describe, expect, it } from 'vitest';
import { formatAge, formatBytes, parseDuration, parseSize } from './duration.ts';

describe('times and sizes', () => {
  it.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['30', 30_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
  ])('%s is %i ms', (text, ms) => expect(parseDuration(text, '--wait')).toBe(ms));
  it.each(['', 'soon', '-1s', '3 weeks', '1e3'])('refuses the time "%s", naming the flag', (text) => {
    expect(() => parseDuration(text, '--wait')).toThrow(/^--wait: wants a time/);
  });
  it.each([
    ['4194304', 4_194_304],
    ['4MiB', 4_194_304],
    ['500kB', 500_000],
    ['1.5 GB', 1_500_000_000],
  ])('%s is %i bytes', (text, bytes) => expect(parseSize(text, '--max-body')).toBe(bytes));
  it('refuses a size in words', () => expect(() => parseSize('big', '--max-body')).toThrow(/^--max-body/));
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.0 kB'],
    [90_757_261, '91 MB'],
    [999_600, '1.0 MB'],
    [5e15, '5000 TB'],
  ])('%i bytes read %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));
  it.each([
    [null, '-'],
    ['2026-01-01T00:00:00Z', '0 s ago'],
    ['2025-12-31T23:58:30Z', '90 s ago'],
    ['2025-12-31T23:00:00Z', '60 min ago'],
    ['2025-12-30T12:00:00Z', '36 h ago'],
    ['2025-12-01T00:00:00Z', '31 d ago'],
  ])('%s reads %s', (iso, text) => expect(formatAge(iso, Date.parse('2026-01-01T00:00:00Z'))).toBe(text));
});
