import type { DynamicModule, Provider, Type } from '@nestjs/common';
import { PromotionModule } from '@perch/promotion';
import { RolloutController } from './admin-api/rollout.controller.ts';
import { PromotionLoop } from './loops/promotion.loop.ts';

export const promotionControllers: Type[] = [RolloutController];

/** For the module that imports `promotionModule(…)`. */
export const promotionProviders: Provider[] = [PromotionLoop];

/** `endpoints`: the very module that the program imports, so that there is one of its services. */
export const promotionModule = (endpoints: DynamicModule): DynamicModule =>
  PromotionModule.forRoot({ imports: [endpoints] });
