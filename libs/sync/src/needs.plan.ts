import { failureReason, type Indexed, isOurName, type SyncWorld } from './sync-world.ts';

const loaded = (entry: Indexed | undefined) =>
  entry?.state === 'READY' || entry?.state === 'LOADING' || entry?.state === 'UNLOADING';

/**
 * Triton's word on the version folder that our folder holds for the model. Names that we give have one version folder;
 * under a literal name a newer one comes in beside the one that serves, and both are listed.
 */
export function entryOf(name: string, { index, folders }: Pick<SyncWorld, 'index' | 'folders'>): Indexed | undefined {
  const entry = index?.get(name);
  const version = folders.get(name)?.version;
  if (entry === undefined || version === undefined || isOurName(name)) return entry;
  return entry.versions?.get(version) ?? { state: '', reason: '' };
}

/** Whether the model, as it is desired, is served now. */
export function isServed(name: string, world: SyncWorld): boolean {
  const wanted = world.desired.get(name);
  if (wanted === undefined || entryOf(name, world)?.state !== 'READY') return false;
  return isOurName(name) || world.folders.get(name)?.digest === wanted.digest;
}

/** Triton's reason why it cannot load just this model; it would say the same again. */
export function lastingFailure(name: string, world: SyncWorld): string | undefined {
  if (!world.folders.get(name)?.current || world.held.untried.has(name)) return undefined;
  return failureReason(entryOf(name, world));
}

export interface NeedFault {
  /** False: it comes by itself, wait for it. */
  lasts: boolean;
  reason: string;
}

/** Why the model may not be loaded yet: what it needs is not served. `seen` ends a circle, which nobody should have made. */
export function needFault(
  name: string,
  world: SyncWorld,
  seen: ReadonlySet<string> = new Set(),
): NeedFault | undefined {
  const faults = (world.desired.get(name)?.needs ?? []).filter((need) => !isServed(need, world));
  const inner = new Set([...seen, name]);
  const reasons = faults.map((need): NeedFault => {
    const failed = seen.has(need) ? undefined : failureOf(need, world, inner);
    return failed === undefined
      ? { lasts: false, reason: `waits for ${need}` }
      : { lasts: true, reason: `needs ${need}, which failed: ${failed}` };
  });
  return reasons.find(({ lasts }) => lasts) ?? reasons[0];
}

function failureOf(name: string, world: SyncWorld, seen: ReadonlySet<string>): string | undefined {
  const failure = world.held.failures.get(name);
  if (failure && failure.retryAtMs === null && failure.digest === world.desired.get(name)?.digest)
    return failure.reason;
  const own = lastingFailure(name, world);
  if (own !== undefined) return own;
  const fault = needFault(name, world, seen);
  return fault?.lasts ? fault.reason : undefined;
}

/** A loaded model that needs this one: as long as there is one, this one stays. */
export function neededBy(name: string, world: SyncWorld): string | undefined {
  for (const [other, entry] of world.index ?? []) {
    if (other === name || !loaded(entry)) continue;
    const needs = world.desired.get(other)?.needs ?? world.folders.get(other)?.needs ?? [];
    if (needs.includes(name)) return other;
  }
  return undefined;
}

/** Why the version folder that was to come in did not; of the others nobody asks. */
export const newestFailure = (entry: Indexed | undefined): string | undefined => {
  const versions = [...(entry?.versions ?? [])].sort(([a], [b]) => b - a);
  return failureReason(versions[0]?.[1]) ?? failureReason(entry);
};
