export { BaselineService } from './evidence/baseline.service.ts';
export type {
  ArmTally, BaselineWish, EvidenceScope, FeedbackReading, MeasuredBaseline, MetricCounts, RolloutEvidence, Tally,
} from './evidence/evidence.entity.ts'; // biome-ignore format: one list
export { EvidenceService } from './evidence/evidence.service.ts';
export { FeedbackService } from './evidence/feedback.service.ts';
export { PromotionModule, type PromotionOptions } from './promotion.module.ts';
export type { Baseline, Epoch, RolloutEnd, RolloutRecord } from './rollout.entity.ts';
export { type RolloutQuery, RolloutService } from './rollout.service.ts';
export { SimulationService } from './simulation.service.ts';
