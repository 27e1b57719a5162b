import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError, parityPathOf } from '@perch/contracts/plain';
import type { FileSource, TextTokenizer } from '../contract.ts';
import { EncodingTokenizer } from './encoding.ts';
import { openCorrected } from './library.ts';

/** Versions of one model mostly carry the same tokenizer.json; its vocabulary then stands in memory once. */
const shared = new Map<string, WeakRef<TextTokenizer>>();
const underWay = new Map<string, Promise<TextTokenizer>>();
const forgotten = new FinalizationRegistry<string>((digest) => {
  if (!shared.get(digest)?.deref()) shared.delete(digest);
});

/**
 * Reads a tokenizer.json of the version, and holds it to `tokenizer.parity.json` where there is one. Throws `not_found`
 * when it is missing, `invalid` when it cannot be used or other tokens come of it.
 */
export async function readTokenizer(files: FileSource, path: string): Promise<TextTokenizer> {
  const file = await files.read(path);
  const tokenizer = await sharedTokenizer(file, path);
  const parity = parityPathOf(path);
  if (files.list().includes(parity)) await holdTo(tokenizer, (await files.read(parity)).toString('utf8'), parity);
  return tokenizer;
}

async function sharedTokenizer(file: Buffer, path: string): Promise<TextTokenizer> {
  const digest = createHash('sha256').update(file).digest('hex');
  const known = shared.get(digest)?.deref() ?? underWay.get(digest);
  if (known) return known;
  const building = buildTokenizer(file.toString('utf8'), path);
  underWay.set(digest, building);
  try {
    const tokenizer = await building;
    shared.set(digest, new WeakRef(tokenizer));
    forgotten.register(tokenizer, digest);
    return tokenizer;
  } finally {
    underWay.delete(digest);
  }
}

/** Whether a tokenizer.json gives what `parity` says, before anything serves it. Throws `invalid` with the first difference. */
export async function checkTokenizer(
  json: { text: string; path: string },
  parity: { text: string; path: string },
): Promise<void> {
  await holdTo(await buildTokenizer(json.text, json.path), parity.text, parity.path);
}

/** Its schema is loaded where there is something to check by. */
const holdTo = async (tokenizer: TextTokenizer, parity: string, path: string): Promise<void> =>
  (await import('./parity.ts')).checkParity(tokenizer, parity, path);

/** In three turns of the event loop, so that requests wait 30 ms at most and not 60. `path` is only for messages. */
export async function buildTokenizer(json: string, path: string): Promise<TextTokenizer> {
  try {
    const config = JSON.parse(json);
    await nextTurn();
    const library = openCorrected(config);
    await nextTurn();
    return new EncodingTokenizer(library, config);
  } catch (error) {
    const reason = (error as Error).message.slice(0, 200);
    throw new AppError('invalid', `${path}: not a tokenizer that can be used: ${reason}`, { cause: error });
  }
}
