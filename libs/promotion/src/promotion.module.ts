import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { BaselineService } from './evidence/baseline.service.ts';
import { CountStore } from './evidence/count.store.ts';
import { EvidenceService } from './evidence/evidence.service.ts';
import { EvidenceStore } from './evidence/evidence.store.ts';
import { FeedbackService } from './evidence/feedback.service.ts';
import { FeedbackStore } from './evidence/feedback.store.ts';
import { HistoryReconcile } from './evidence/history.reconcile.ts';
import { PrometheusClient } from './evidence/prometheus.client.ts';
import { ProvidedReconcile } from './evidence/provided.reconcile.ts';
import { ProvidedStore } from './evidence/provided.store.ts';
import { TrafficHistoryStore } from './evidence/traffic-history.store.ts';
import { RolloutApply } from './rollout.apply.ts';
import { RolloutObserve } from './rollout.observe.ts';
import { RolloutReconcile } from './rollout.reconcile.ts';
import { RolloutService } from './rollout.service.ts';
import { RolloutStore } from './rollout.store.ts';
import { SimulationService } from './simulation.service.ts';

const parts = [
  BaselineService,
  EvidenceService,
  EvidenceStore,
  TrafficHistoryStore,
  ProvidedStore,
  ProvidedReconcile,
  PrometheusClient,
  HistoryReconcile,
  FeedbackStore,
  CountStore,
  FeedbackService,
  RolloutApply,
  RolloutObserve,
  RolloutReconcile,
  RolloutService,
  RolloutStore,
  SimulationService,
];

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
