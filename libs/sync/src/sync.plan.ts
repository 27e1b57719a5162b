import { entryOf, neededBy, needFault } from './needs.plan.ts';

/** One desired model, as far as a plan needs it. */
export interface Wanted {
  digest: string;
  hashes: readonly string[];
  /** Comes in alone, so that what the server grows by is its memory. */
  measure?: boolean;
  /** Loaded only when these are served, and they stay as long as it is loaded. */
  needs?: readonly string[];
}

export type IndexState = 'READY' | 'LOADING' | 'UNLOADING' | 'UNAVAILABLE' | 'UNKNOWN' | '';

/** Triton's word on one model. */
export interface Indexed {
  state: IndexState;
  reason: string;
  /** Of each version folder, when the entry stands for several. */
  versions?: ReadonlyMap<number, { state: IndexState; reason: string }>;
}

/** What is on disk for one model. The last two are looked at only for desired models that Triton does not serve. */
export interface Folder {
  /** Null: not written by us. */
  digest: string | null;
  /** Made for the desired model, with the configuration that we would write now. */
  current: boolean;
  /** Current, and each file is one whose bytes were proven. */
  intact: boolean;
  /** Number of the version folder that holds the model; absent: 1. */
  version?: number;
  /** What the model needs, as it stands in the folder: told also of models that are no longer desired. */
  needs?: readonly string[];
}

/** Only what cannot be asked of Triton or the disk. */
export interface Held {
  /** Models at which something is being done right now. */
  busy: ReadonlyMap<string, ActionKind>;
  /** Why the last try failed. `retryAtMs` null: for a reason that lasts as long as the digest. */
  failures: ReadonlyMap<string, { digest: string; reason: string; retryAtMs: number | null }>;
  /** Models that answered a warm-up since they became READY. */
  warmed: ReadonlySet<string>;
  /** Models staged by this process and not tried since: Triton's reason for them is an old one. */
  untried: ReadonlySet<string>;
  /** Models that have been LOADING for too long. */
  stuck: ReadonlySet<string>;
  /** Models that came in when Triton went away: each comes in alone, to know which one it was. */
  suspects: ReadonlySet<string>;
  /** Models that are being measured, from their load to their first answer. */
  measuring: ReadonlySet<string>;
  /** The server is about to be restarted: nothing more is loaded into it. */
  loadsHeld: boolean;
}

export interface SyncWorld {
  desired: ReadonlyMap<string, Wanted>;
  /** Whether what is ours and not desired may be taken away. */
  removalsAllowed: boolean;
  /** Undefined: Triton does not answer. */
  index: ReadonlyMap<string, Indexed> | undefined;
  folders: ReadonlyMap<string, Folder>;
  /** Blobs that are not in the cache, or not as they should be. */
  missing: ReadonlySet<string>;
  held: Held;
  nowMs: number;
}

/** In the order in which a model goes through them (`renew`: beside the one that serves); the last two lead out. */
export const actionKinds = ['pull', 'stage', 'renew', 'load', 'warm', 'unload', 'remove'] as const;
export type ActionKind = (typeof actionKinds)[number];
export interface Action {
  kind: ActionKind;
  model: string;
}

/** The form of the names that we give. */
export const isOurName = (name: string): boolean => /^[a-z][a-z0-9-]{0,63}-v\d{1,10}-[0-9a-f]{12}$/.test(name);

/** Whether a model or folder is one that we made: by its name, or by our mark in it. Anything else is left alone. */
export const isOurs = (name: string, folder: Folder | undefined): boolean =>
  isOurName(name) || (folder !== undefined && folder.digest !== null);

/** The word `unloaded` is no failure: somebody asked for it. */
export const failureReason = (entry: Indexed | undefined): string | undefined =>
  entry?.state === 'UNAVAILABLE' && entry.reason !== 'unloaded' ? entry.reason : undefined;

const moving = (entry: Indexed | undefined) => entry?.state === 'LOADING' || entry?.state === 'UNLOADING';

/**
 * The next action for each model that is out of step, at most one a model; [] when all are in step, under way, waiting
 * for a retry, or failed for a reason that lasts.
 */
export function planSync(world: SyncWorld): Action[] {
  const actions: Action[] = [];
  const add = (model: string, kind: ActionKind | undefined) => {
    if (kind !== undefined) actions.push({ kind, model });
  };
  for (const [name, wanted] of world.desired)
    if (!isHeldBack(name, wanted, world)) add(name, nextTowards(name, wanted, world));
  for (const name of presentNames(world)) {
    if (world.desired.has(name) || world.held.busy.has(name)) continue;
    if (!world.removalsAllowed || !isOurs(name, world.folders.get(name))) continue;
    if (!waitsForRetry(name, world)) add(name, nextAway(name, world));
  }
  return keepSomeAlone(actions, world);
}

const comesIn = (kind: ActionKind) => kind === 'load' || kind === 'warm';

/**
 * Models that must come in alone (from the load to the first answer) wait until no other does, and then nothing else is
 * loaded, warmed or unloaded beside them. Begun ones first, then all that need no care, then one of them.
 */
function keepSomeAlone(actions: Action[], world: SyncWorld): Action[] {
  const { busy, suspects, measuring, loadsHeld } = world.held;
  const needsCare = (name: string) =>
    suspects.has(name) ||
    (world.desired.get(name)?.measure === true && (measuring.has(name) || world.index?.get(name)?.state !== 'READY'));
  const moves = actions.filter(({ kind }) => comesIn(kind) && !(loadsHeld && kind === 'load'));
  const coming = [...busy].filter(([, kind]) => comesIn(kind)).map(([name]) => name);
  const plain = moves.filter(({ model }) => !needsCare(model));
  const begun = moves.find(({ kind, model }) => kind === 'warm' && needsCare(model));
  const oneIsIn = coming.some(needsCare);
  const leaving = [...busy.values()].includes('unload');
  const allowed = oneIsIn
    ? []
    : begun
      ? coming.length > 0
        ? []
        : [begun]
      : coming.length > 0 || plain.length > 0 || leaving
        ? plain
        : moves.slice(0, 1);
  const noUnload = oneIsIn || allowed.some(({ model }) => needsCare(model));
  return actions.filter(({ kind, model }) => {
    if (comesIn(kind)) return allowed.some((move) => move.model === model);
    return kind !== 'unload' || !noUnload;
  });
}

/** Every model that is loaded, on its way in or out, or on disk. What Triton only remembers is not there any more. */
export function presentNames({ index, folders }: Pick<SyncWorld, 'index' | 'folders'>): Set<string> {
  const loaded = [...(index ?? [])].filter(([, entry]) => entry.state === 'READY' || moving(entry));
  return new Set([...loaded.map(([name]) => name), ...folders.keys()]);
}

function waitsForRetry(name: string, world: SyncWorld): boolean {
  const failure = world.held.failures.get(name);
  return failure !== undefined && failure.retryAtMs !== null && failure.retryAtMs > world.nowMs;
}

function isHeldBack(name: string, wanted: Wanted, world: SyncWorld): boolean {
  if (world.held.busy.has(name)) return true;
  const failure = world.held.failures.get(name);
  if (failure === undefined || failure.digest !== wanted.digest) return false;
  return failure.retryAtMs === null || failure.retryAtMs > world.nowMs;
}

function nextTowards(name: string, wanted: Wanted, world: SyncWorld): ActionKind | undefined {
  const { index, missing, held } = world;
  const folder = world.folders.get(name);
  // A literal name without our mark belongs to something else, and is replaced or refused as what is out of date is.
  const stale = isOurName(name)
    ? folder !== undefined && folder.digest !== null && folder.digest !== wanted.digest
    : folder?.digest !== wanted.digest;
  const entry = stale ? index?.get(name) : entryOf(name, world);
  if (index !== undefined && moving(entry)) return undefined;
  if (entry?.state === 'READY' && stale) {
    // Two identities under one name of ours: never edited in place. Under a literal one the newer comes in beside the older.
    if (isOurName(name)) return 'unload';
    return wanted.hashes.some((hash) => missing.has(hash)) ? 'pull' : 'renew';
  }
  if (entry?.state === 'READY' && !held.warmed.has(name)) return 'warm';
  if (lastingFailure(name, world) !== undefined) return undefined;
  // Also for a model that is served: the cache must be able to bring it back.
  if (wanted.hashes.some((hash) => missing.has(hash))) return 'pull';
  if (index === undefined || entry?.state === 'READY') return undefined;
  if (!folder?.intact) return isOurName(name) || index.get(name)?.state !== 'READY' ? 'stage' : 'renew';
  return needFault(name, world) ? undefined : 'load';
}

/** Triton's reason why it cannot load just this model; it would say the same again. */
export function lastingFailure(name: string, world: SyncWorld): string | undefined {
  if (!world.folders.get(name)?.current || world.held.untried.has(name)) return undefined;
  return failureReason(entryOf(name, world));
}

function nextAway(name: string, world: SyncWorld): ActionKind | undefined {
  // Without Triton's word a folder may belong to a model in service.
  if (world.index === undefined) return undefined;
  const entry = world.index.get(name);
  if (moving(entry) || neededBy(name, world)) return undefined;
  if (entry?.state === 'READY') return 'unload';
  return world.folders.has(name) ? 'remove' : undefined;
}
