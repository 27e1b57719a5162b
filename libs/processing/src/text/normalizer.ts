import { ReplaceNormalizer } from './library-parts.ts';
import { readPrecompiled } from './precompiled.ts';
import { accents, controls, lowercase, marks, normalizeAs, space, stripLeft, stripRight } from './unicode.ts';

export type Normalizer = (text: string) => string;

export interface NormalizerJson {
  type?: string;
  lowercase?: boolean;
  clean_text?: boolean;
  handle_chinese_chars?: boolean;
  strip_accents?: boolean | null;
  strip_left?: boolean;
  strip_right?: boolean;
  prepend?: string;
  precompiled_charsmap?: string | null;
  normalizers?: NormalizerJson[];
}

const spaces = new RegExp(space, 'gu');
/** CJK ideographs as BERT's own code lists them. */
const ideographs =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;

const stripAccents = (text: string): string => normalizeAs('NFD', text).replace(accents, '');

function readBert({
  clean_text = true,
  handle_chinese_chars = true,
  lowercase: lower = true,
  strip_accents,
}: NormalizerJson): Normalizer {
  const steps: Normalizer[] = [];
  if (clean_text) steps.push((text) => text.replace(controls, '').replace(spaces, ' '));
  if (handle_chinese_chars) steps.push((text) => text.replace(ideographs, ' $& '));
  if (strip_accents ?? lower) steps.push(stripAccents);
  if (lower) steps.push(lowercase);
  return inTurn(steps);
}

const inTurn =
  (steps: readonly Normalizer[]): Normalizer =>
  (text) =>
    steps.reduce((given, step) => step(given), text);

const strip =
  ({ strip_left = true, strip_right = true }: NormalizerJson): Normalizer =>
  (text) => {
    const begun = strip_left ? stripLeft(text) : text;
    return strip_right ? stripRight(begun) : begun;
  };

/** The normaliser that a tokenizer.json writes down, as the reference runs it. Throws for a type that is not known. */
export function readNormalizer(json: NormalizerJson): Normalizer {
  switch (json.type) {
    case 'BertNormalizer':
      return readBert(json);
    case 'Precompiled':
      return readPrecompiled(json.precompiled_charsmap);
    case 'Sequence':
      return inTurn((json.normalizers ?? []).map(readNormalizer));
    case 'NFC':
    case 'NFD':
    case 'NFKC':
    case 'NFKD': {
      const form = json.type;
      return (text) => normalizeAs(form, text);
    }
    case 'Strip':
      return strip(json);
    case 'StripAccents':
      return (text) => text.replace(marks, '');
    case 'Lowercase':
      return lowercase;
    case 'Prepend':
      return (text) => (text.length === 0 ? text : `${json.prepend ?? ''}${text}`);
    case 'Replace': {
      const replacing = new ReplaceNormalizer(json);
      return (text) => replacing.normalize(text);
    }
    default:
      throw new Error(
        `its normalizer ${json.type} is not supported; there are BertNormalizer, Precompiled, NFC, NFD, NFKC, NFKD, Strip, StripAccents, Lowercase, Prepend, Replace and Sequence`,
      );
  }
}
