export { PromotionModule, type PromotionOptions } from './promotion.module.ts';
export type { Baseline, Epoch, RolloutEnd, RolloutRecord } from './rollout.entity.ts';
export { type RolloutQuery, RolloutService } from './rollout.service.ts';
