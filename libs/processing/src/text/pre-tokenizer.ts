import { SplitPreTokenizer } from './library-parts.ts';
import { readBehavior, splitText } from './split.ts';
import { hideNew, newCodePoints, punctuation, space, without } from './unicode.ts';

/** Cuts normalised text into the pieces that the model reads; `first`: no added token stands before it. */
export type PreTokenizer = (text: string, first: boolean) => string[];

export interface PreTokenizerJson {
  type?: string;
  add_prefix_space?: boolean;
  use_regex?: boolean;
  replacement?: string;
  prepend_scheme?: string;
  split?: boolean;
  pattern?: { Regex?: string; String?: string };
  behavior?: string;
  invert?: boolean;
  individual_digits?: boolean;
  pretokenizers?: PreTokenizerJson[];
}

const letter = without('\\p{L}', newCodePoints);
const number = without('\\p{N}', newCodePoints);
const word = without('\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}', newCodePoints);
const every = (source: string) => new RegExp(source, 'gv');

const bertWords = every(`[^${space}${punctuation}]+|${punctuation}`);
const words = every(`${word}+|[^${word}${space}]+`);
const runsBetweenSpaces = every(`[^${space}]+`);
const gpt2Words = every(
  `'s|'t|'re|'ve|'m|'ll|'d| ?${letter}+| ?${number}+| ?[^${space}${letter}${number}]+|${space}+(?![^${space}])|${space}+`,
);

/** GPT-2's `bytes_to_unicode`: a visible character for each byte. */
export const byteCharacters: readonly string[] = (() => {
  const shown = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(shown(byte) ? byte : next++));
})();

function toByteCharacters(text: string): string {
  if (/^ ?[!-~]*$/.test(text)) return text.startsWith(' ') ? `Ġ${text.slice(1)}` : text;
  let result = '';
  for (const byte of Buffer.from(text)) result += byteCharacters[byte];
  return result;
}

function readByteLevel({ add_prefix_space = true, use_regex = true }: PreTokenizerJson): PreTokenizer {
  return (text) => {
    const given = add_prefix_space && !text.startsWith(' ') ? ` ${text}` : text;
    return use_regex ? (given.match(gpt2Words) ?? []).map(toByteCharacters) : [toByteCharacters(given)];
  };
}

function readMetaspace(json: PreTokenizerJson): PreTokenizer {
  const { replacement = '▁', split = true } = json;
  const scheme = json.prepend_scheme ?? (json.add_prefix_space === false ? 'never' : 'always');
  const boundary = new RegExp(replacement.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'gu');
  return (text, first) => {
    const spaced = text.replaceAll(' ', replacement);
    const wanted = scheme === 'always' || (scheme === 'first' && first);
    const given = wanted && !spaced.startsWith(replacement) ? replacement + spaced : spaced;
    return split ? splitText(given, boundary, 'mergedwithnext') : [given];
  };
}

function readSplit(json: PreTokenizerJson): PreTokenizer {
  const { pattern } = new SplitPreTokenizer(json);
  if (!pattern) throw new Error('its splitter has no pattern');
  const behavior = readBehavior(json.behavior, 'removed');
  return (text) => splitText(text, pattern, behavior, { invert: json.invert === true, seen: hideNew(text) });
}

const splitting =
  (source: string, behavior: Parameters<typeof splitText>[2]): PreTokenizer =>
  (text) =>
    splitText(text, every(source), behavior);

function inTurn(steps: readonly PreTokenizer[]): PreTokenizer {
  return (text, first) =>
    steps.reduce<string[]>(
      (pieces, step) => pieces.flatMap((piece, i) => (piece.length > 0 ? step(piece, first && i === 0) : [])),
      [text],
    );
}

/** The splitter that a tokenizer.json writes down, as the reference runs it. Throws for a type that is not known. */
export function readPreTokenizer(json: PreTokenizerJson): PreTokenizer {
  switch (json.type) {
    case 'Sequence':
      return inTurn((json.pretokenizers ?? []).map(readPreTokenizer));
    case 'BertPreTokenizer':
      return (text) => text.match(bertWords) ?? [];
    case 'Whitespace':
      return (text) => text.match(words) ?? [];
    case 'WhitespaceSplit':
      return (text) => text.match(runsBetweenSpaces) ?? [];
    case 'ByteLevel':
      return readByteLevel(json);
    case 'Metaspace':
      return readMetaspace(json);
    case 'Split':
      return readSplit(json);
    case 'Punctuation':
      return splitting(punctuation, readBehavior(json.behavior, 'isolated'));
    case 'Digits':
      return splitting('\\p{N}', json.individual_digits ? 'isolated' : 'contiguous');
    default:
      throw new Error(
        `its pre_tokenizer ${json.type} is not supported; there are BertPreTokenizer, ByteLevel, Metaspace, Split, Punctuation, Digits, Whitespace, WhitespaceSplit and Sequence`,
      );
  }
}
