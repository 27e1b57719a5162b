import type { DesiredModel, ObservedServer } from '@perch/contracts';
import type { IndexEntry, TritonControl } from '@perch/triton/control';
import type { BlobStore } from './blobs/blob.store.ts';
import { entryOf } from './needs.plan.ts';
import { ownFiles, type RepositoryStore } from './repository.store.ts';
import type { Folder, Indexed, IndexState } from './sync-world.ts';

/** Calls that a look at Triton takes; the embedded engine and a real Triton both answer them. */
export type SyncTriton = Pick<
  TritonControl,
  'ready' | 'serverMetadata' | 'index' | 'load' | 'unload' | 'modelMetadata' | 'modelConfig' | 'close'
>;

/** What is there right now. `index` undefined: Triton did not answer. */
export interface Observation {
  index: Map<string, Indexed> | undefined;
  folders: Map<string, Folder>;
  missing: Set<string>;
}

const rank: IndexState[] = ['READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE', 'UNKNOWN', ''];

/** One entry a model: of several versions the liveliest counts. */
export function indexByName(entries: readonly IndexEntry[]): Map<string, Indexed> {
  const models = new Map<string, Indexed>();
  for (const { name, version, state, reason } of entries) {
    const known = models.get(name);
    const versions = new Map(known?.versions).set(Number(version), { state, reason });
    const lively = !known || rank.indexOf(state) < rank.indexOf(known.state) ? { state, reason } : known;
    models.set(name, { ...lively, versions });
  }
  return models;
}

const served = new Set<IndexState | undefined>(['READY', 'LOADING', 'UNLOADING']);

/** Looks at the repository folder and the cache, in the light of Triton's index. */
export async function observeDisk(
  parts: { repository: RepositoryStore; blobs: BlobStore },
  desired: ReadonlyMap<string, DesiredModel>,
  index: Map<string, Indexed> | undefined,
  configOf: (name: string, model: DesiredModel) => string | undefined,
): Promise<Observation> {
  const wanted = new Map<string, { sha256: string; size: number }>();
  for (const model of desired.values()) for (const file of ownFiles(model)) wanted.set(file.sha256, file);
  const [marks, missing] = await Promise.all([parts.repository.list(), parts.blobs.missing(wanted.values())]);
  const folders = new Map<string, Folder>();
  await Promise.all(
    [...marks].map(async ([name, mark]) => {
      const { digest = null, version, needs } = mark ?? {};
      const folder: Folder = { digest, current: false, intact: false, version, needs };
      folders.set(name, folder);
      const model = desired.get(name);
      if (!model || served.has(index && entryOf(name, { index, folders })?.state)) return;
      const config = configOf(name, model);
      if (config !== undefined) Object.assign(folder, await parts.repository.inspect(name, model, config));
    }),
  );
  return { index, folders, missing };
}

export type TritonFacts = ObservedServer['triton'];
