import { AppError, parseParity } from '@perch/contracts';
import type { TextTokenizer } from '../contract.ts';

/** A text that is not cut has fewer tokens. */
const everything = 100_000_000;
const lead = 40;

const firstDifference = (wanted: readonly number[], got: ArrayLike<number>): number => {
  const most = Math.max(wanted.length, got.length);
  for (let at = 0; at < most; at++) if (wanted[at] !== got[at]) return at;
  return -1;
};

/**
 * Holds a tokenizer to what the reference made of some texts. Throws `invalid` that names the file and the first
 * difference.
 */
export function checkParity(tokenizer: TextTokenizer, parity: string, path: string): void {
  const { texts, reference = 'the reference' } = parseParity(parity, path);
  for (const [index, { text, ids, types }] of texts.entries()) {
    const batch = tokenizer.encodeBatch([text], { maxTokens: everything });
    for (const [what, wanted, got] of [
      ['token', ids, batch.ids],
      ['type of token', types ?? batch.types, batch.types],
    ] as const) {
      const at = firstDifference(wanted as number[], got);
      if (at < 0) continue;
      const shown = JSON.stringify(text);
      throw new AppError(
        'invalid',
        `${path}: texts[${index}] (${shown.length > lead ? `${shown.slice(0, lead)}…` : shown}) differs at ${what} ${at}: ${reference} has ${wanted[at] ?? 'no more'}, this server ${got[at] ?? 'no more'}`,
      );
    }
  }
}
