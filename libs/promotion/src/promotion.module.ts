import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { RolloutService } from './rollout.service.ts';

const parts = [RolloutService];

export interface PromotionOptions {
  /** The very `EndpointsModule` of the program. */
  imports: NonNullable<ModuleMetadata['imports']>;
}

/** Wants `CHANGE_LOG` and `LOGGER` from global modules, and the global database module. */
@Module({})
export class PromotionModule {
  static forRoot({ imports }: PromotionOptions): DynamicModule {
    return { module: PromotionModule, imports, providers: parts, exports: parts };
  }
}
