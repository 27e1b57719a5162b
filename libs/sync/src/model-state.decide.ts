import type { ObservedState } from '@perch/contracts';
import { entryOf, isServed, lastingFailure, needFault } from './needs.plan.ts';
import { type ActionKind, isOurs, presentNames, type SyncWorld, type Wanted } from './sync-world.ts';

/** Where one model stands, for the report. */
export interface ModelState {
  state: ObservedState;
  /** Triton's own words, or ours where Triton has none. */
  reason: string | null;
}

const stateOfAction: Record<ActionKind, ObservedState> = {
  pull: 'pulling',
  stage: 'staging',
  renew: 'staging',
  load: 'loading',
  warm: 'warming',
  unload: 'unloading',
  remove: 'unloading',
};

/** Every desired model, and every one of ours that is still there. */
export function describeModels(world: SyncWorld, tritonDown: string): Map<string, ModelState> {
  const states = new Map<string, ModelState>();
  for (const [name, wanted] of world.desired) states.set(name, describeWanted(name, wanted, world, tritonDown));
  for (const name of presentNames(world)) {
    if (world.desired.has(name) || !isOurs(name, world.folders.get(name))) continue;
    const state = describeUnwanted(name, world);
    if (state) states.set(name, state);
  }
  return states;
}

function describeWanted(name: string, wanted: Wanted, world: SyncWorld, tritonDown: string): ModelState {
  const { index, held } = world;
  const entry = entryOf(name, world);
  const failure = held.failures.get(name);
  const reason = failure?.digest === wanted.digest ? failure.reason : null;
  const doing = held.busy.get(name);
  const served = isServed(name, world);
  if (served && held.warmed.has(name) && doing !== 'unload') return { state: 'ready', reason: null };
  if (held.stuck.has(name) && entry?.state === 'LOADING') return { state: 'stuck', reason };
  if (doing !== undefined) return { state: stateOfAction[doing], reason };
  if (reason !== null && failure?.retryAtMs === null) return { state: 'failed', reason };
  if (served) return { state: 'warming', reason };
  if (entry?.state === 'LOADING') return { state: 'loading', reason };
  if (entry?.state === 'UNLOADING') return { state: 'unloading', reason };
  const words = lastingFailure(name, world);
  if (words !== undefined) return { state: 'failed', reason: words };
  if (wanted.hashes.some((hash) => world.missing.has(hash))) return { state: 'pulling', reason };
  if (index === undefined) return { state: 'loading', reason: tritonDown };
  const need = needFault(name, world);
  if (need?.lasts) return { state: 'failed', reason: need.reason };
  if (!world.folders.get(name)?.intact) return { state: 'staging', reason };
  return { state: 'loading', reason: reason ?? need?.reason ?? null };
}

function describeUnwanted(name: string, world: SyncWorld): ModelState | undefined {
  const entry = world.index?.get(name);
  const reason = world.held.failures.get(name)?.reason ?? null;
  // Wanted or not: Triton will not let go of it by itself.
  if (world.held.stuck.has(name) && entry?.state === 'LOADING') return { state: 'stuck', reason };
  if (world.removalsAllowed) return { state: 'unloading', reason };
  switch (entry?.state) {
    case 'READY':
      return { state: 'ready', reason: null };
    case 'LOADING':
      return { state: 'loading', reason: null };
    case 'UNLOADING':
      return { state: 'unloading', reason: null };
    default:
      return undefined;
  }
}
