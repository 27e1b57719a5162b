import type { DeploymentState } from '@perch/contracts';
import type { Placement } from '@perch/fleet';

export interface StateDecision {
  state: DeploymentState;
  reason: string | null;
}

const isReady = ({ observed }: Placement) => observed?.state === 'ready';

/** Servers that may get requests: those ready now, else those that proved it once and are restarting or silent. */
export function servingPlacements(placements: readonly Placement[]): Placement[] {
  const proved = placements.filter((placement) => placement.state === 'active' && placement.proved);
  const ready = proved.filter((placement) => isReady(placement) && placement.presence === 'live');
  return ready.length > 0 ? ready : proved;
}

const isBroken = ({ observed }: Placement) => observed?.state === 'failed' || observed?.state === 'stuck';

/** It has no bytes to load, and says why (a full disk, no way to the store): that may last. */
const isHeldUp = ({ observed }: Placement) => observed?.state === 'pulling' && observed.reason !== null;

function failureOf(placements: readonly Placement[]): string | null {
  const failed = placements.find(isBroken);
  return failed ? `server ${failed.serverName}: ${failed.observed?.reason ?? failed.observed?.state}` : null;
}

export interface StateRules {
  /** It serves from so many ready servers on. Default 1. */
  minReplicas?: number;
  /** Another version of the endpoint serves meanwhile: then all its live servers are waited for, so that it takes over at full strength. */
  covered?: boolean;
}

/**
 * State of a deployment that is wanted, from what its servers say. It becomes ready when `minReplicas` servers serve it
 * and, while another version serves, every other live server it was placed on has loaded or refused it, or cannot get
 * its bytes; from then on it stays ready while any of them serves.
 */
export function decideState(
  before: DeploymentState,
  placements: readonly Placement[],
  { minReplicas = 1, covered = false }: StateRules = {},
): StateDecision {
  const active = placements.filter(({ state }) => state === 'active');
  if (active.length === 0) return { state: 'placing', reason: null };
  const failure = failureOf(active);
  const serves = servingPlacements(active).length > 0;
  // Failed though its servers serve it: routers could not. It was ready, and is judged as such.
  if (before === 'ready' || (before === 'failed' && !failure && serves)) {
    if (serves) return { state: 'ready', reason: null };
    return failure ? { state: 'failed', reason: failure } : { state: 'loading', reason: loadingReason(active) };
  }
  const live = active.filter(({ presence }) => presence === 'live');
  const ready = live.filter((placement) => placement.proved && isReady(placement)).length;
  const coming = live.filter((placement) => !isReady(placement) && !isBroken(placement));
  if (ready >= minReplicas && (!covered || coming.every(isHeldUp))) return { state: 'ready', reason: null };
  if (failure && ready + coming.length < minReplicas) return { state: 'failed', reason: failure };
  const few = ready > 0 ? `${ready} of at least ${minReplicas} servers are ready` : null;
  return { state: 'loading', reason: loadingReason(active) ?? few };
}

function loadingReason(active: readonly Placement[]): string | null {
  const waiting = active.find((placement) => !isReady(placement));
  if (!waiting) return null;
  if (waiting.presence !== 'live') return `server ${waiting.serverName} does not report`;
  const { observed } = waiting;
  return `server ${waiting.serverName}: ${observed?.reason ?? observed?.state ?? 'not told yet'}`;
}
