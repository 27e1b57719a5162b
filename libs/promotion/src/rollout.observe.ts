import { Injectable } from '@nestjs/common';
import { TrafficService, type TrafficSight } from '@perch/endpoints';
import type { Tx } from '@perch/platform/database';
import { BaselineService } from './evidence/baseline.service.ts';
import { EvidenceService } from './evidence/evidence.service.ts';
import { FeedbackService } from './evidence/feedback.service.ts';
import type { RolloutRecord } from './rollout.entity.ts';
import { RolloutStore } from './rollout.store.ts';
import type { RolloutWorld } from './rollout-move.plan.ts';
import { wantsFeedbackKey } from './traffic-force.plan.ts';

const counted = ['shadowing', 'shifting', 'baking'];

/** Reads all that one look at an endpoint's rollout needs, with the endpoint's traffic row locked until the transaction ends. */
@Injectable()
export class RolloutObserve {
  constructor(
    private readonly traffic: TrafficService,
    private readonly store: RolloutStore,
    private readonly evidence: EvidenceService,
    private readonly baselines: BaselineService,
    private readonly feedback: FeedbackService,
  ) {}

  async observe(tx: Tx, endpoint: string): Promise<RolloutWorld> {
    const sight = await this.traffic.look(tx, endpoint);
    const now = await this.store.now(tx);
    const active = await this.store.active(tx, endpoint);
    return {
      sight,
      active,
      last: active ? null : await this.store.last(tx, endpoint),
      kept: sight.force.keep.length > 0 ? await this.store.kept(tx, endpoint, now) : null,
      evidence: active && counted.includes(active.state) ? await this.evidence.read(tx, active) : null,
      baseline: active && active.baseline === null ? await this.measure(tx, active, sight) : null,
      feedbackKey: active && wantsFeedbackKey(active) ? await this.feedback.keyFor(tx, active.id) : null,
      now,
    };
  }

  private measure(tx: Tx, { endpoint, stable, policy }: RolloutRecord, { spec }: TrafficSight) {
    return this.baselines.measure(tx, {
      endpoint,
      version: stable.version,
      policy,
      sloLatencyMs: spec?.slo?.latencyMs,
    });
  }
}
