import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import type { Progress } from '../progress.ts';
import type { Piece } from './blob.plan.ts';
import type { HashedFile } from './manifest.source.ts';

const tries = 4;

/** What came of one piece: sent, or its URL is no longer good. */
type Sent = 'sent' | 'expired';

/**
 * Sends the pieces, `lanes` at a time, each one tried again when the connection breaks or the store is busy. Returns
 * whether any URL had expired (ask for fresh ones and go on). Throws `integrity` when the store refuses the bytes.
 */
export async function sendPieces(
  client: AdminClient,
  pieces: readonly Piece[],
  files: readonly HashedFile[],
  lanes: number,
  progress: Progress,
): Promise<{ expired: boolean }> {
  const byHash = new Map(files.map((file) => [file.sha256, file]));
  let next = 0;
  let expired = false;
  let failed = false;
  const lane = async () => {
    for (let at = next++; at < pieces.length && !failed; at = next++) {
      const piece = pieces[at] as Piece;
      const file = byHash.get(piece.sha256);
      if (!file)
        throw new AppError('internal', `the control plane asks for bytes ${piece.sha256} that are not in this version`);
      if ((await sendPiece(client, piece, file, progress)) === 'expired') expired = true;
    }
  };
  const all = Array.from({ length: Math.min(lanes, pieces.length) }, () =>
    lane().catch((error) => {
      failed = true;
      throw error;
    }),
  );
  await Promise.all(all).finally(() => Promise.allSettled(all));
  return { expired };
}

async function sendPiece(client: AdminClient, piece: Piece, file: HashedFile, progress: Progress): Promise<Sent> {
  for (let attempt = 1; ; attempt += 1) {
    await refuseChanged(file);
    let counted = 0;
    const count = (bytes: number) => {
      counted += bytes;
      progress.add(bytes);
    };
    const outcome = await sendOnce(client, piece, file, count);
    if (outcome === 'sent') return 'sent';
    progress.add(-counted);
    if (outcome.status === 403) return 'expired';
    if (!outcome.again || attempt >= tries) throw refusal(outcome, piece, file);
    await pause(300 * 2 ** (attempt - 1));
  }
}

interface Refused {
  status: number;
  again: boolean;
  words: string;
}

async function sendOnce(
  client: AdminClient,
  { url, headers, start, end }: Piece,
  { file }: HashedFile,
  count: (bytes: number) => void,
): Promise<'sent' | Refused> {
  const size = end - start;
  const body =
    size === 0 ? Buffer.alloc(0) : createReadStream(file, { start, end: end - 1, highWaterMark: 256 * 1024 });
  if (!Buffer.isBuffer(body)) body.on('data', (chunk) => count(chunk.length));
  try {
    const { status, body: words } = await client.send(url, headers, body, size);
    if (status >= 200 && status < 300) return 'sent';
    const again = status >= 500 || status === 408 || status === 429;
    return { status, again, words: words.toString('utf8').replace(/\s+/g, ' ').slice(0, 300) };
  } catch (error) {
    return { status: 0, again: true, words: (error as Error).message };
  } finally {
    if (!Buffer.isBuffer(body)) body.destroy();
  }
}

function refusal({ status, words }: Refused, { label }: Piece, { path }: HashedFile): AppError {
  if (status === 0) return new AppError('unavailable', `${path}, ${label}: ${words}; upload again to go on from here`);
  const code = status === 507 ? 'no_space' : status < 500 ? 'integrity' : 'unavailable';
  return new AppError(code, `${path}, ${label}: the artifact store refused it (${status}): ${words}`);
}

/** The hash was taken of other bytes than would be sent now. */
async function refuseChanged({ file, size, mtimeMs }: HashedFile): Promise<void> {
  const now = await stat(file).catch(() => undefined);
  if (now?.size !== size || now.mtimeMs !== mtimeMs)
    throw new AppError('integrity', `${file} changed after it was hashed; nothing of it is served; upload again`);
}
