export { BaselineService } from './evidence/baseline.service.ts';
export type {
  ArmTally, BaselineWish, EvidenceScope, MeasuredBaseline, MetricCounts, RolloutEvidence, Tally,
} from './evidence/evidence.entity.ts'; // biome-ignore format: one list
export { EvidenceService } from './evidence/evidence.service.ts';
export { FeedbackService } from './evidence/feedback.service.ts';
export { HistoryReconcile } from './evidence/history.reconcile.ts';
export { ProvidedReconcile } from './evidence/provided.reconcile.ts';
export { PromotionModule, type PromotionOptions } from './promotion.module.ts';
export { RolloutApply } from './rollout.apply.ts';
export type { Baseline, Epoch, RolloutEnd, RolloutRecord } from './rollout.entity.ts';
export { RolloutReconcile } from './rollout.reconcile.ts';
export { type RolloutQuery, RolloutService } from './rollout.service.ts';
export { type RolloutCount, RolloutStore } from './rollout.store.ts';
export { promotionGarbage } from './rollout-garbage.ts';
export { SimulationService } from './simulation.service.ts';
export { marginOf } from './statistics/margin.decide.ts';
export { type ExpectedTraffic, expectedPromotionMs, smallestMargin } from './statistics/margin-auto.decide.ts';
export { type Bounds, promotionBounds } from './statistics/promotion-bounds.decide.ts';
export { bakeShare, clockStepMs, firstShare, nextShare, sharesOf } from './statistics/ramp.decide.ts';
export { type History, nullRatio, rollbackEvidence } from './statistics/rollback-evidence.decide.ts';
export { type RolloutForecast, simulateRollout } from './statistics/simulate-rollout.ts';
export { decideStep } from './statistics/step.decide.ts';
