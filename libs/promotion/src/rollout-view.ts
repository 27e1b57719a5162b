import type { Rollout, RolloutEvent } from '@perch/contracts';
import type { RolloutRecord } from './rollout.entity.ts';
import type { StoredRolloutEvent } from './rollout.store.ts';

/** A rollout as people see it. */
export const viewRollout = (record: RolloutRecord): Rollout => ({
  id: record.id,
  endpoint: record.endpoint,
  state: record.state,
  run: record.run,
  heldBy: record.heldBy,
  reason: record.reason,
  stable: record.stable,
  candidate: record.candidate,
  policy: record.policy,
  sticky: record.stickyHeader !== null,
  epoch: record.epoch,
  // A rollout that is over forces nothing any more: what a promoted one left is all of the traffic.
  weightPercent: record.state === 'promoted' ? 100 : Number((record.share * 100).toFixed(6)),
  restarts: record.restarts,
  queuedVersion: record.queued?.version ?? null,
  startedAt: record.startedAt.toISOString(),
  startedBy: record.startedBy,
  stepAt: record.stepAt.toISOString(),
  endedAt: record.endedAt?.toISOString() ?? null,
  decision: record.decision,
  pairs: record.pairs,
  fallbacks: record.fallbacks,
});

export const viewEvent = ({ input: _input, ...event }: StoredRolloutEvent): RolloutEvent => event;
