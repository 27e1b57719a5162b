import { entryOf, lastingFailure, neededBy, needFault } from './needs.plan.ts';
import {
  type Action,
  type ActionKind,
  isOurName,
  isOurs,
  moving,
  presentNames,
  type SyncWorld,
  type Wanted,
} from './sync-world.ts';

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

function nextAway(name: string, world: SyncWorld): ActionKind | undefined {
  // Without Triton's word a folder may belong to a model in service.
  if (world.index === undefined) return undefined;
  const entry = world.index.get(name);
  if (moving(entry) || neededBy(name, world)) return undefined;
  if (entry?.state === 'READY') return 'unload';
  return world.folders.has(name) ? 'remove' : undefined;
}
