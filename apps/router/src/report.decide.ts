import type { RouterReport } from '@perch/contracts';
import type { WorkerState } from './serving/serving-tables.ts';

export type ReportBody = NonNullable<RouterReport['report']>;

/**
 * What the router says of itself: the lowest revision among its workers (one that has no table yet counts as 0), requests
 * in hand added up. Workers that follow different lineages for a moment acknowledge the older state: revision 0 of none.
 */
export function mergeStates(states: readonly WorkerState[]): ReportBody {
  const lineages = new Set(states.map((state) => state.lineage));
  const agreed = lineages.size === 1;
  const inFlight: Record<string, number> = {};
  const unlisted: Record<string, number> = {};
  const problems: Record<string, string> = {};
  const loading: Record<string, string> = {};
  for (const state of states) {
    for (const [pair, count] of Object.entries(state.unlisted ?? {})) unlisted[pair] = (unlisted[pair] ?? 0) + count;
    for (const [id, count] of Object.entries(state.inFlight)) inFlight[id] = (inFlight[id] ?? 0) + count;
    Object.assign(problems, state.problems);
    Object.assign(loading, state.loading);
  }
  return {
    lineage: agreed ? (states[0]?.lineage ?? null) : null,
    revision: agreed ? Math.max(0, Math.min(...states.map((state) => state.revision), Number.MAX_SAFE_INTEGER)) : 0,
    inFlight,
    unlisted,
    problems,
    ...(Object.keys(loading).length > 0 ? { loading } : {}),
    held: states.some((state) => state.held),
  };
}
