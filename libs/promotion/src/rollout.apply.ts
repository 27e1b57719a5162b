import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError } from '@perch/contracts';
import { rolloutWork, TrafficService } from '@perch/endpoints';
import { type CounterMetric, Metrics } from '@perch/platform';
import { CHANGE_LOG, type ChangeLog, type Tx, WorkStore } from '@perch/platform/database';
import type { NewRolloutEvent, RolloutRecord } from './rollout.entity.ts';
import { RolloutStore } from './rollout.store.ts';
import type { RolloutPlan, RolloutWorld } from './rollout-move.plan.ts';
import { viewRollout } from './rollout-view.ts';

/** Writes one plan wholly or not at all: the rollout, its events, and what the endpoint's traffic is to be. */
@Injectable()
export class RolloutApply {
  private readonly events: CounterMetric<'type'>;

  constructor(
    private readonly store: RolloutStore,
    private readonly traffic: TrafficService,
    private readonly work: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
    metrics: Metrics,
  ) {
    this.events = metrics.counter('perch_rollout_events_total', 'What happened to rollouts, by type of event.', [
      'type',
    ]);
  }

  /** What a person wants; the loop goes on from there. */
  async command(tx: Tx, world: RolloutWorld, plan: RolloutPlan, actor: Actor): Promise<void> {
    await this.apply(tx, world, plan, actor);
    await this.work.enqueue(tx, rolloutWork, world.sight.endpoint);
  }

  /** `actor`: who moves it. Throws `conflict` when somebody wrote the rollout meanwhile. */
  async apply(tx: Tx, { sight, now }: RolloutWorld, plan: RolloutPlan, actor: Actor): Promise<void> {
    const { rollout, quarantine } = plan;
    if (rollout) await this.save(tx, rollout);
    if (quarantine) await this.traffic.quarantine(tx, actor, { ...quarantine, endpoint: sight.endpoint });
    await this.traffic.put(tx, sight.endpoint, plan.force);
    for (const event of plan.events) await this.note(tx, rollout!, event, actor, now);
  }

  private async save(tx: Tx, rollout: RolloutRecord): Promise<void> {
    if (rollout.rowVersion === 0) await this.store.insert(tx, rollout);
    else if (!(await this.store.update(tx, rollout)))
      throw new AppError('conflict', `rollout ${rollout.id} was changed meanwhile; look at it and try again`);
  }

  /** An event of the rollout, and for everybody else a row of the audit log and an event of the endpoint. */
  private async note(tx: Tx, rollout: RolloutRecord, event: NewRolloutEvent, actor: Actor, now: Date): Promise<void> {
    this.events.add({ type: event.type });
    await this.store.addEvent(tx, rollout.id, now, event);
    await this.changes.record(tx, actor, `rollout.${event.type}`, rollout.endpoint, {
      rollout: rollout.id,
      version: rollout.candidate.version,
      stableVersion: rollout.stable.version,
      state: rollout.state,
      run: rollout.run,
      weightPercent: viewRollout(rollout).weightPercent,
      reason: event.message,
    });
  }
}
