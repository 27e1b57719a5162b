import { Injectable } from '@nestjs/common';
import { AppError } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { BaselineWish, MeasuredBaseline } from './evidence.entity.ts';

/** What stable was like over the day before: measured once, when a rollout starts. */
@Injectable()
export class BaselineService {
  async measure(_tx: Tx, _wish: BaselineWish): Promise<MeasuredBaseline> {
    throw new AppError('not_available_yet', 'baselines are not measured yet');
  }
}
