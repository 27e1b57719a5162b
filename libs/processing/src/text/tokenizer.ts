import { createHash } from 'node:crypto';
import { Tokenizer } from '@huggingface/tokenizers';
import { AppError } from '@perch/contracts';
import type { FileSource, TextTokenizer } from '../contract.ts';
import { EncodingTokenizer } from './encoding.ts';

/** Versions of one model mostly carry the same tokenizer.json; its vocabulary then stands in memory once. */
const shared = new Map<string, WeakRef<TextTokenizer>>();
const forgotten = new FinalizationRegistry<string>((digest) => {
  if (!shared.get(digest)?.deref()) shared.delete(digest);
});

/** Reads a tokenizer.json of the version. Throws `not_found` when it is missing, `invalid` when it cannot be used. */
export async function readTokenizer(files: FileSource, path: string): Promise<TextTokenizer> {
  const file = await files.read(path);
  const digest = createHash('sha256').update(file).digest('hex');
  const known = shared.get(digest)?.deref();
  if (known) return known;
  const tokenizer = buildTokenizer(file.toString('utf8'), path);
  shared.set(digest, new WeakRef(tokenizer));
  forgotten.register(tokenizer, digest);
  return tokenizer;
}

/** `path` is only for messages. */
export function buildTokenizer(json: string, path: string): TextTokenizer {
  try {
    const config = JSON.parse(json);
    return new EncodingTokenizer(new Tokenizer(config, {}), config);
  } catch (error) {
    throw new AppError(
      'invalid',
      `${path}: not a tokenizer that can be used: ${(error as Error).message.slice(0, 200)}`,
      {
        cause: error,
      },
    );
  }
}
