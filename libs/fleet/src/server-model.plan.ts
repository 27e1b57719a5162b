import type { ObservedState, ServerModel } from '@perch/contracts';
import type { Memory } from './placement/memory.plan.ts';
import type { PlacementState } from './placement/placement-row.ts';

/** All that is known of one name on one server. */
export interface ModelSight {
  name: string;
  desired: boolean;
  needs: readonly string[];
  observed: { state: ObservedState; reason: string | null; since: string } | null;
  memory: Memory | null;
  placements: readonly { endpoint: string; state: PlacementState; waits: string | null; yields: boolean }[];
}

/** `behind`: the server has not taken its newest document yet. */
export function describeServerModel(sight: ModelSight, server: { live: boolean; behind: boolean }): ServerModel {
  const { name, desired, needs, observed, memory, placements } = sight;
  return {
    name,
    desired,
    state: observed?.state ?? null,
    reason: observed?.reason ?? null,
    since: observed?.since ?? null,
    memory,
    needs: [...needs],
    endpoints: [...new Set(placements.map(({ endpoint }) => endpoint))].sort(),
    waitsFor: waitsFor(sight, server),
  };
}

function waitsFor(
  { desired, observed, placements }: ModelSight,
  { live, behind }: { live: boolean; behind: boolean },
): string | null {
  const leaving = placements.some(({ state }) => state === 'leaving');
  if (!live && (!observed || desired !== (observed.state === 'ready'))) return 'the agent to report again';
  if (desired && leaving && placements.every(({ state }) => state !== 'active'))
    return 'routers to send no more requests here';
  if (desired && !observed) return behind ? 'the agent to take its document' : 'the agent to begin with it';
  if (!desired && placements.length > 0) return 'its document to be published';
  if (!desired) return observed ? 'the model server to unload it' : null;
  if (observed?.state === 'failed') return 'other files or other settings';
  if (observed?.state !== 'ready') return 'the model server to be done with it';
  const moved = placements.find(({ waits, yields }) => waits !== null || yields);
  return moved ? `${moved.endpoint}: ${moved.waits ?? 'to be ready on another server'}` : null;
}
