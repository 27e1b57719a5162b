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

function failureOf(placements: readonly Placement[]): string | null {
  const failed = placements.find(({ observed }) => observed?.state === 'failed' || observed?.state === 'stuck');
  return failed ? `server ${failed.serverName}: ${failed.observed?.reason ?? failed.observed?.state}` : null;
}

/**
 * State of a deployment that is wanted, from what its servers say. It becomes ready when every live server it was
 * placed on serves it; from then on it stays ready while any of them does. `unplaced`: why it has too few servers.
 */
export function decideState(
  before: DeploymentState,
  placements: readonly Placement[],
  unplaced: string | undefined,
): StateDecision {
  const active = placements.filter(({ state }) => state === 'active');
  if (active.length === 0) return { state: 'placing', reason: unplaced ?? null };
  const failure = failureOf(active);
  const serves = servingPlacements(active).length > 0;
  // Failed though its servers serve it: routers could not. It was ready, and is judged as such.
  if (before === 'ready' || (before === 'failed' && !failure && serves)) {
    if (serves) return { state: 'ready', reason: null };
    return failure ? { state: 'failed', reason: failure } : { state: 'loading', reason: loadingReason(active) };
  }
  if (failure) return { state: 'failed', reason: failure };
  const expected = active.filter(({ presence }) => presence === 'live');
  const everywhere = expected.length > 0 && expected.every((placement) => placement.proved && isReady(placement));
  return everywhere ? { state: 'ready', reason: null } : { state: 'loading', reason: loadingReason(active) };
}

function loadingReason(active: readonly Placement[]): string | null {
  const waiting = active.find((placement) => !isReady(placement));
  if (!waiting) return null;
  if (waiting.presence !== 'live') return `server ${waiting.serverName} does not report`;
  const { observed } = waiting;
  return `server ${waiting.serverName}: ${observed?.reason ?? observed?.state ?? 'not told yet'}`;
}
