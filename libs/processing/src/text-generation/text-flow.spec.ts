import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TextFlow } from './text-flow.ts';

/** Each id is a byte of UTF-8; characters come out whole, as the tokenizer's own decoding has it. */
function byteDecoding() {
  const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
  return {
    push: (id: number) => utf8.decode(Uint8Array.of(id), { stream: true }),
    finish: () => utf8.decode(),
  };
}

const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀'), maxLength: 20 });
const stops = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀'), minLength: 1, maxLength: 3 }), {
  maxLength: 2,
});

it('gives the text up to the first stop string that is complete, in whole characters, and the tokens of just that', () => {
  fc.assert(
    fc.property(text, stops, (whole, strings) => {
      const flow = new TextFlow(byteDecoding(), strings);
      const pieces: string[] = [];
      let tokens = '';
      let stopped = false;
      const take = (flowing: ReturnType<TextFlow['push']>) => {
        pieces.push(flowing.text);
        tokens += flowing.logprobs.map(({ token }) => token).join('');
        stopped = flowing.stopped;
      };
      const bytes = [...Buffer.from(whole)];
      for (const [index, id] of bytes.entries()) {
        take(flow.push(id, { token: String.fromCharCode(index), id, logprob: 0, top: [] }, true));
        if (stopped) break;
      }
      if (!stopped) take(flow.finish(true));
      const ends = strings.map((one) => whole.indexOf(one)).filter((at) => at >= 0);
      const out = pieces.join('');
      expect(stopped).toBe(ends.length > 0);
      expect(whole.startsWith(out)).toBe(true);
      if (!stopped) expect(out).toBe(whole);
      else expect(ends).toContain(out.length);
      expect(pieces.some((piece) => piece.includes('\ufffd'))).toBe(false);
      const count = Buffer.byteLength(out);
      expect(tokens).toBe(String.fromCharCode(...bytes.slice(0, count).keys()));
    }),
  );
});
