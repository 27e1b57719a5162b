import type { ObservedModel } from '@perch/contracts';

/** All files of a model that is handed to a Triton with the request to load it; it passes through our memory whole. */
export const inlineLimitBytes = 64 * 1_048_576;

/** A version that a Triton without an agent holds by its owner's word: our key for it. No name of ours has a slash. */
export const heldVersionKey = (model: string, version: string): string => `${model}/${version}`;

/** What one version of a model looks like in Triton's index. */
export interface IndexedVersion {
  name: string;
  version: string;
  state: string;
  reason: string;
}

export interface ExternalSight {
  /** What was told of it last, by our keys. */
  known: ReadonlyMap<string, { state: string; reason: string | null; since: string }>;
  /** Names of the models that we are to load into it; empty when it is only adopted. */
  desired: ReadonlySet<string>;
  index: readonly IndexedVersion[];
  /** Names of everything that is loaded now, whether the index lists it or not. */
  loaded: ReadonlySet<string>;
  /** Loads that we began and that are not over. */
  loading: ReadonlySet<string>;
  /** Loads that ended in the model server's own words. */
  failures: ReadonlyMap<string, string>;
  /** False: the database may be an older one, and what it does not know of may be wanted all the same. */
  mayUnload: boolean;
  /** ISO text. */
  now: string;
}

export interface ExternalPlan {
  models: Record<string, ObservedModel>;
  /** Our keys of what became ready: to be described by the model server's own metadata before that is told. */
  describe: { key: string; model: string }[];
  load: string[];
  unload: string[];
}

/**
 * What a Triton without an agent holds and what we do about it. What its owner loaded is told and never touched; what
 * we are to load is loaded, also again after a restart, and only what we loaded ourselves is ever unloaded.
 */
export function planExternal(sight: ExternalSight): ExternalPlan {
  const plan: ExternalPlan = { models: {}, describe: [], load: [], unload: [] };
  const tell = (key: string, state: ObservedModel['state'], reason: string | null): void => {
    const before = sight.known.get(key);
    const same = before?.state === state && before.reason === reason;
    plan.models[key] = { state, reason, since: same ? before.since : sight.now };
  };
  tellHeld(sight, plan, tell);
  const ours = new Set([...sight.desired, ...[...sight.known.keys()].filter((key) => !key.includes('/'))]);
  for (const name of [...ours].sort()) planOurs(name, sight, plan, tell);
  return plan;
}

type Tell = (key: string, state: ObservedModel['state'], reason: string | null) => void;

function tellHeld(sight: ExternalSight, plan: ExternalPlan, tell: Tell): void {
  for (const { name, version, state, reason } of sight.index) {
    if (version === '' || sight.desired.has(name) || sight.known.has(name)) continue;
    const key = heldVersionKey(name, version);
    if (state === 'READY') {
      tell(key, 'ready', null);
      if (sight.known.get(key)?.state !== 'ready') plan.describe.push({ key, model: name });
    } else if (state === 'LOADING') tell(key, 'loading', null);
    else if (state === 'UNLOADING') tell(key, 'unloading', null);
    else if (state === 'UNAVAILABLE' && reason !== 'unloaded' && reason !== '') tell(key, 'failed', reason);
  }
}

function planOurs(name: string, sight: ExternalSight, plan: ExternalPlan, tell: Tell): void {
  const { desired, known, loaded, loading, failures, mayUnload } = sight;
  const before = known.get(name);
  if (!desired.has(name)) {
    if (!loaded.has(name)) return;
    if (mayUnload) plan.unload.push(name);
    tell(name, mayUnload ? 'unloading' : 'ready', null);
    return;
  }
  const failure = failures.get(name) ?? (before?.state === 'failed' ? before.reason : null);
  if (loading.has(name)) tell(name, 'loading', null);
  else if (loaded.has(name)) {
    tell(name, 'ready', null);
    if (before?.state !== 'ready') plan.describe.push({ key: name, model: name });
  } else if (failure !== null) tell(name, 'failed', failure);
  else {
    plan.load.push(name);
    tell(name, 'loading', null);
  }
}
