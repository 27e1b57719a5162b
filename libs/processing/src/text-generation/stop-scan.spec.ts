import fc from 'fast-check';
import { expect, it } from 'vitest';
import { StopScan } from './stop-scan.ts';

const piece = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 4 });
const stop = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 });

function run(pieces: readonly string[], stops: readonly string[]) {
  const scan = new StopScan(stops);
  let out = '';
  for (const one of pieces) {
    const { text, stopped } = scan.push(one, true);
    out += text;
    if (stopped) return { out, stopped };
  }
  return { out: out + scan.rest(), stopped: false };
}

it('ends where the first stop string begins, however the text is cut into pieces', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.array(stop, { maxLength: 3 }), (pieces, stops) => {
      const { out, stopped } = run(pieces, stops);
      const whole = pieces.join('');
      const places = stops.map((one) => whole.indexOf(one)).filter((at) => at >= 0);
      expect(stopped).toBe(places.length > 0);
      if (!stopped) expect(out).toBe(whole);
      // a stop string that is complete earlier ends the text although another one begins before it
      else expect(places.some((at) => whole.slice(0, at) === out)).toBe(true);
    }),
  );
});

it('holds back no more than what may become a stop string', () => {
  const scan = new StopScan(['</s>', 'END']);
  expect(scan.push('x<', true).text).toBe('x');
  expect(scan.push('/', true).text).toBe('');
  expect(scan.push('b', true).text).toBe('</b');
  expect(scan.push(' E', true).text).toBe(' ');
  expect(scan.rest()).toBe('E');
});

it('lets everything pass while it may not stop', () => {
  const scan = new StopScan(['ab']);
  expect(scan.push('xab', false)).toEqual({ text: 'xab', stopped: false });
  expect(scan.push('ab', true)).toEqual({ text: '', stopped: true });
});
