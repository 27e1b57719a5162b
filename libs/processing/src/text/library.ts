import { isUtf8 } from 'node:buffer';
import { Tokenizer } from '@huggingface/tokenizers';
import { type NormalizerJson, readNormalizer } from './normalizer.ts';
import { type PreTokenizerJson, readPreTokenizer } from './pre-tokenizer.ts';
import { encodeSections, type SectionedTokenizer } from './sections.ts';

/** What is used of the library's tokenizer (its own types do not resolve under NodeNext). */
export interface LibraryTokenizer {
  model: {
    vocab: (string | undefined)[];
    tokens_to_ids: Map<string, number>;
    /** Of Unigram: tokens of one piece. */
    tokenize?(piece: string): string[];
  };
  decoder: LibraryDecoder | null;
  all_special_ids: number[];
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] };
}

export interface LibraryDecoder {
  (tokens: string[]): string;
  config: { type?: string };
  decode_chain(tokens: string[]): string[];
  decoders?: { config: { type?: string }; decode_chain(tokens: string[]): string[] }[];
}

export interface LibraryJson {
  model?: { type?: string; vocab?: unknown; merges?: unknown } | null;
  normalizer?: NormalizerJson | null;
  pre_tokenizer?: PreTokenizerJson | null;
  post_processor?: unknown;
}

const supported = ['WordPiece', 'BPE', 'Unigram'];

function checkModel({ model }: LibraryJson): void {
  // Old files leave the type out; the library tells them apart by their fields.
  if (model?.type === undefined && (Array.isArray(model?.vocab) || model?.merges)) return;
  if (model?.type === undefined || !supported.includes(model.type))
    throw new Error(`its model is of type ${model?.type ?? 'unknown'}, supported are ${supported.join(', ')}`);
}

/** The library as it is. Throws what it throws for a file that it does not know. */
export const openLibrary = (json: unknown): LibraryTokenizer =>
  new Tokenizer(json as object, {}) as unknown as LibraryTokenizer;

/**
 * The library with the parts replaced in which it differs from the reference: normaliser, splitter, decoding of bytes.
 * Special tokens around a text are put there by `frame.ts`.
 */
export function openCorrected(json: LibraryJson): LibraryTokenizer {
  checkModel(json);
  const library = openLibrary({ ...json, pre_tokenizer: null, post_processor: null });
  const open = library as unknown as SectionedTokenizer;
  open.encode_text = (text) => encodeSections(open, text);
  if (json.normalizer) open.normalizer = readNormalizer(json.normalizer);
  if (json.pre_tokenizer) {
    const split = readPreTokenizer(json.pre_tokenizer);
    open.pre_tokenizer = (text, { section_index }) => split(text, section_index === 0);
  }
  rememberPieces(library);
  const { decoder } = library;
  if (decoder?.decoders)
    decoder.decoders = decoder.decoders.map((step) =>
      step.config.type === 'ByteFallback' ? { config: step.config, decode_chain: decodeByteTokens } : step,
    );
  return library;
}

const mostRemembered = 10_000;
const longestRemembered = 64;

/** Unigram weighs every way to cut a word up, a few microseconds each; words repeat. BPE remembers by itself. */
function rememberPieces({ model }: LibraryTokenizer): void {
  if (!model.tokenize) return;
  const tokenize = model.tokenize.bind(model);
  const known = new Map<string, string[]>();
  model.tokenize = (piece) => {
    const found = known.get(piece);
    if (found) return found;
    const tokens = tokenize(piece);
    if (piece.length > longestRemembered) return tokens;
    if (known.size >= mostRemembered) known.clear();
    known.set(piece, tokens);
    return tokens;
  };
}

/** `<0x41>` tokens in a row are UTF-8; where they are not, each one is U+FFFD. */
function decodeByteTokens(tokens: string[]): string[] {
  const decoded: string[] = [];
  let bytes: number[] = [];
  const flush = () => {
    if (bytes.length === 0) return;
    const run = Buffer.from(bytes);
    decoded.push(isUtf8(run) ? run.toString('utf8') : '\ufffd'.repeat(run.length));
    bytes = [];
  };
  for (const token of tokens) {
    const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
    if (byte !== undefined) bytes.push(Number.parseInt(byte, 16));
    else {
      flush();
      decoded.push(token);
    }
  }
  flush();
  return decoded;
}
