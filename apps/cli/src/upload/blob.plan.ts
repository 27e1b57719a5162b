import type { BlobUpload } from '@perch/contracts';

/** One request that carries bytes. */
export interface Piece {
  sha256: string;
  url: string;
  headers: Record<string, string>;
  /** Bytes [start, end) of the blob. */
  start: number;
  end: number;
  /** In words, for messages: `part 3 of 12`. */
  label: string;
}

/** The requests that are still to be made for the missing blobs, biggest blob first: the longest one ends the upload. */
export function planPieces(missing: readonly BlobUpload[]): Piece[] {
  return [...missing].sort((a, b) => b.size - a.size).flatMap(piecesOf);
}

function piecesOf(blob: BlobUpload): Piece[] {
  const { sha256, size, headers = {} } = blob;
  if (blob.method === 'put') return [{ sha256, url: blob.url ?? '', headers, start: 0, end: size, label: 'the whole' }];
  const partSize = blob.partSize ?? size;
  const count = blob.partCount ?? Math.max(1, Math.ceil(size / partSize));
  const done = new Set(blob.partsDone);
  return (blob.parts ?? [])
    .filter(({ partNumber }) => !done.has(partNumber))
    .map(({ partNumber, url }) => ({
      sha256,
      url,
      headers,
      start: (partNumber - 1) * partSize,
      end: Math.min(size, partNumber * partSize),
      label: `part ${partNumber} of ${count}`,
    }));
}

export const bytesOf = (pieces: readonly Piece[]): number =>
  pieces.reduce((sum, { start, end }) => sum + end - start, 0);
