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

export const moving = (entry: Indexed | undefined): boolean =>
  entry?.state === 'LOADING' || entry?.state === 'UNLOADING';

/** Every model that is loaded, on its way in or out, or on disk. What Triton only remembers is not there any more. */
export function presentNames({ index, folders }: Pick<SyncWorld, 'index' | 'folders'>): Set<string> {
  const loaded = [...(index ?? [])].filter(([, entry]) => entry.state === 'READY' || moving(entry));
  return new Set([...loaded.map(([name]) => name), ...folders.keys()]);
}
