import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planVersion } from './plan-header.decide.ts';

const header = (change: (bytes: Buffer) => void = () => undefined): Buffer => {
  const bytes = Buffer.alloc(64, 0x5a);
  bytes.write('ftrt', 0, 'latin1');
  bytes.writeUInt32LE(0, 4);
  Buffer.from([10, 3, 0, 26]).copy(bytes, 24);
  change(bytes);
  return bytes;
};

describe('planVersion', () => {
  it.each<[string, Buffer, string | null]>([
    ['a plan', header(), '10.3.0'],
    ['another version', header((bytes) => bytes.fill(8, 24, 27)), '8.8.8'],
    ['another layout', header((bytes) => bytes.writeUInt32LE(1, 4)), null],
    ['an older tag', header((bytes) => bytes.write('ptrt', 0, 'latin1')), null],
    ['JSON in front of the plan, as some exporters write it', Buffer.from(`\x20\0\0\0{"task": "detect", "names": {"0": "a"}}`), null],
    ['a cut file', header().subarray(0, 27), null],
    ['no bytes', Buffer.alloc(0), null],
  ])('%s', (_what, bytes, version) => expect(planVersion(bytes)).toBe(version)); // biome-ignore format: one row a case

  it('takes any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const version = planVersion(bytes);
        expect(version === null || /^\d+\.\d+\.\d+$/.test(version)).toBe(true);
      }),
    );
  });

  it('reads a view that does not begin at the start of its memory', () => {
    const wide = Buffer.concat([Buffer.alloc(3), header()]);
    expect(planVersion(wide.subarray(3))).toBe('10.3.0');
  });
});
