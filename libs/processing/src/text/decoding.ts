import type { TextDecodeOptions, TextDecoding } from '../contract.ts';
import type { LibraryTokenizer } from './library.ts';
import { byteCharacters } from './pre-tokenizer.ts';

const byteOf: ReadonlyMap<string, number> = new Map(byteCharacters.map((character, byte) => [character, byte]));

const replacement = '\ufffd';
/** A character has at most 4 bytes: what is still broken after so many more tokens will not mend. */
const mostHeldTokens = 8;

/** A token that is no text of bytes stands for itself, as the reference takes it. */
function bytesOf(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = byteOf.get(token[i]!);
    if (byte === undefined) return Buffer.from(token);
    bytes[i] = byte;
  }
  return bytes;
}

/** Ids back to text, whole or as they come. Ids outside the vocabulary are left out. */
export class TokenDecoder {
  private readonly library: LibraryTokenizer;
  private readonly special: ReadonlySet<number>;
  private readonly byteLevel: boolean;

  constructor(library: LibraryTokenizer, kind: string | undefined) {
    this.library = library;
    this.special = new Set(library.all_special_ids);
    this.byteLevel = kind === 'ByteLevel';
  }

  decode(ids: ArrayLike<number>, { skipSpecial = true }: TextDecodeOptions = {}): string {
    const tokens = this.tokensOf(ids, skipSpecial);
    if (tokens.length === 0) return '';
    if (this.byteLevel) return Buffer.concat(tokens.map(bytesOf)).toString('utf8');
    return this.library.decoder ? this.library.decoder(tokens) : tokens.join(' ');
  }

  stream(options: TextDecodeOptions = {}): TextDecoding {
    return this.byteLevel ? this.streamBytes(options) : this.streamWindow(options);
  }

  private tokensOf(ids: ArrayLike<number>, skipSpecial: boolean): string[] {
    const tokens: string[] = [];
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      const token = this.library.model.vocab[id];
      if (token !== undefined && !(skipSpecial && this.special.has(id))) tokens.push(token);
    }
    return tokens;
  }

  private streamBytes({ skipSpecial = true }: TextDecodeOptions): TextDecoding {
    const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
    return {
      push: (id) =>
        this.tokensOf([id], skipSpecial)
          .map((token) => utf8.decode(bytesOf(token), { stream: true }))
          .join(''),
      finish: () => utf8.decode(),
    };
  }

  /**
   * The text of a token depends on the ones before it (spaces, bytes), so the last ones that were sent are decoded
   * again with each new one, and what is longer is new: the reference's `DecodeStream`.
   */
  private streamWindow(options: TextDecodeOptions): TextDecoding {
    let window: number[] = [];
    let sent = 0;
    let prefix = '';
    const advance = (text: string): string => {
      const fresh = text.slice(prefix.length);
      window = window.slice(sent);
      sent = window.length;
      prefix = this.decode(window, options);
      return fresh;
    };
    return {
      push: (id) => {
        window.push(id);
        const text = this.decode(window, options);
        const broken = text.endsWith(replacement) && window.length - sent < mostHeldTokens;
        return text.length > prefix.length && !broken ? advance(text) : '';
      },
      finish: () => advance(this.decode(window, options)),
    };
  }
}
