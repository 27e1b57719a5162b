import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';
import { decideBaseline } from './baseline.decide.ts';
import { dayOf } from './day.plan.ts';
import type { BaselineWish, MeasuredBaseline } from './evidence.entity.ts';
import { TrafficHistoryStore } from './traffic-history.store.ts';

/** What stable was like over the day before: measured once, when a rollout starts. */
@Injectable()
export class BaselineService {
  constructor(private readonly store: TrafficHistoryStore) {}

  async measure(tx: Tx, { endpoint, version, policy, sloLatencyMs }: BaselineWish): Promise<MeasuredBaseline> {
    return decideBaseline(dayOf(await this.store.day(tx, endpoint), version), policy, sloLatencyMs);
  }
}
