import type { DynamicModule, Provider, Type } from '@nestjs/common';
import { PromotionModule } from '@perch/promotion';
import { FeedbackController } from './admin-api/feedback.controller.ts';
import { RolloutController } from './admin-api/rollout.controller.ts';
import { EvidenceLoop } from './loops/evidence.loop.ts';
import { PromotionLoop } from './loops/promotion.loop.ts';

export const promotionControllers: Type[] = [FeedbackController, RolloutController];

/** For the module that imports `promotionModule(…)`. */
export const promotionProviders: Provider[] = [EvidenceLoop, PromotionLoop];

/** `endpoints`: the very module that the program imports, so that there is one of its services. */
export const promotionModule = (endpoints: DynamicModule): DynamicModule =>
  PromotionModule.forRoot({ imports: [endpoints] });
