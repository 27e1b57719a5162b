import { availableParallelism } from 'node:os';
import {
  AppError,
  type CreateVersion,
  canonicalJson,
  manifestDigest,
  plainUses,
  type Version,
  type VersionUpload,
} from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { startProgress } from '../progress.ts';
import type { ModelReference } from '../reference.ts';
import { sendPieces } from './blob.apply.ts';
import { bytesOf, planPieces } from './blob.plan.ts';
import { type FoundFile, type HashedFile, hashFiles, manifestOf } from './manifest.source.ts';

export interface UploadWish extends Omit<CreateVersion, 'files'> {
  model: ModelReference;
  files: readonly FoundFile[];
  /** Make a new version even where the newest one holds the same bytes. */
  always: boolean;
  /** Any version of these bytes will do, not the newest alone: what is there in its order already is not sent again. */
  anywhere?: boolean;
  /** Show progress on a terminal. */
  progress: boolean;
}
export interface Uploaded {
  version: Version;
  /** How it came about: newly made, gone on with after a cut, fetched by the control plane, or found complete already. */
  outcome: 'created' | 'resumed' | 'fetched' | 'already there';
  sentBytes: number;
}

const lanes = Math.min(4, Math.max(2, availableParallelism()));
const rounds = 5;
const completeTimeoutMs = 30 * 60_000;

export const versionsPath = ({ project, name }: ModelReference): string => `/models/${project}/${name}/versions`;

/**
 * Hashes, creates the version (or finds the one that was cut off, or is there already), sends what the store lacks and
 * completes it. Running it again after any failure goes on where it stopped.
 */
export async function uploadVersion(client: AdminClient, wish: UploadWish): Promise<Uploaded> {
  const total = wish.files.reduce((sum, { size }) => sum + size, 0);
  const hashing = await startProgress('hashing', total, wish.progress);
  const files = await hashFiles(wish.files, lanes, hashing).finally(() => hashing.end());
  const digest = manifestDigest(manifestOf(files));
  const same = await findSame(client, wish, digest);
  if (same && same.state !== 'uploading') return { version: same, outcome: 'already there', sentBytes: 0 };
  const upload = same ? await resume(client, same) : await create(client, wish, files);
  const sentBytes = await sendAll(client, upload, files, wish.progress);
  const at = `${versionsPath(wish.model)}/${upload.version.number}`;
  const version = await client.call<Version>(`${at}/complete`, { method: 'POST', timeoutMs: completeTimeoutMs });
  return { version, outcome: same ? 'resumed' : 'created', sentBytes };
}

/** A cut-off upload of these bytes; else the newest version when it holds exactly these bytes. */
async function findSame(client: AdminClient, wish: UploadWish, digest: string): Promise<Version | undefined> {
  const versions = await client.list<Version>(versionsPath(wish.model)).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'not_found') return [];
    throw error;
  });
  const newestFirst = versions.sort((a, b) => b.number - a.number);
  const uses = canonicalJson(plainUses(wish.uses));
  const processing = canonicalJson(wish.processing ?? null);
  const isSame = (version: Version) =>
    version.manifestDigest === digest &&
    canonicalJson(plainUses(version.uses)) === uses &&
    canonicalJson(version.processing ?? null) === processing;
  const cut = newestFirst.find((version) => version.state === 'uploading' && isSame(version));
  if (cut) return cut;
  const whole = newestFirst.filter(({ state }) => state !== 'uploading');
  const reusable = (wish.anywhere ? whole : whole.slice(0, 1)).filter(
    (version) => isSame(version) && version.state !== 'archived',
  );
  return wish.always ? undefined : reusable[0];
}

const resume = (client: AdminClient, { project, name, number }: Version): Promise<VersionUpload> =>
  client.call(`${versionsPath({ project, name })}/${number}/uploads`, { method: 'POST' });

function create(client: AdminClient, wish: UploadWish, files: readonly HashedFile[]): Promise<VersionUpload> {
  const { model: _model, files: _files, always: _always, anywhere: _anywhere, progress: _progress, ...told } = wish;
  const body: CreateVersion = { files: manifestOf(files), ...told };
  return client.call(versionsPath(wish.model), { method: 'POST', body, timeoutMs: 120_000 });
}

async function sendAll(
  client: AdminClient,
  first: VersionUpload,
  files: readonly HashedFile[],
  show: boolean,
): Promise<number> {
  let pieces = planPieces(first.missing);
  const total = bytesOf(pieces);
  const progress = await startProgress('uploading', total, show);
  try {
    for (let round = 1; pieces.length > 0; round += 1) {
      const { expired } = await sendPieces(client, pieces, files, lanes, progress);
      if (!expired) return total;
      if (round >= rounds)
        throw new AppError(
          'forbidden',
          'the artifact store refuses its own fresh URLs (403); are the clocks in step? perch doctor',
        );
      pieces = planPieces((await resume(client, first.version)).missing);
    }
    return total;
  } finally {
    progress.end();
  }
}
