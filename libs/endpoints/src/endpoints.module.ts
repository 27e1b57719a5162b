import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { CensusStore } from './census.store.ts';
import { DeploymentStore } from './deployment.store.ts';
import { EndpointApply } from './endpoint.apply.ts';
import { EndpointReconcile } from './endpoint.reconcile.ts';
import { EndpointService } from './endpoint.service.ts';
import { EndpointStore } from './endpoint.store.ts';
import { EndpointChangeService } from './endpoint-change.service.ts';
import { EndpointDetailService } from './endpoint-detail.service.ts';
import { EndpointSwitchService } from './endpoint-switch.service.ts';
import { ComposedStore, EndpointsStore } from './endpoints.store.ts';
import { ExportService } from './export.service.ts';
import { FanOutReconcile } from './fan-out.reconcile.ts';
import { ModuleUsersService } from './module-users.service.ts';
import { PipelineService } from './pipeline/pipeline.service.ts';
import { PipelineStore } from './pipeline/pipeline.store.ts';
import { PipelineChangeService } from './pipeline/pipeline-change.service.ts';
import { ProcessingSource } from './resolve/processing.source.ts';
import { ResolutionSource } from './resolve/resolution.source.ts';
import { WantedObserve } from './resolve/wanted.observe.ts';
import { RetireReconcile } from './retire.reconcile.ts';
import { RoutingTableReconcile } from './route/routing-table.reconcile.ts';
import { SpecAcceptService } from './spec-accept.service.ts';
import { SplitService } from './split/split.service.ts';
import { SplitStore } from './split/split.store.ts';
import { SplitChangeService } from './split/split-change.service.ts';
import { QuarantineService } from './traffic/quarantine.service.ts';
import { QuarantineStore } from './traffic/quarantine.store.ts';
import { TrafficService } from './traffic/traffic.service.ts';
import { TrafficStore } from './traffic/traffic.store.ts';
import { VersionUsersService } from './version-users.service.ts';
import { WhyService } from './why/why.service.ts';

const parts = [
  CensusStore,
  ComposedStore,
  DeploymentStore,
  EndpointApply,
  EndpointChangeService,
  EndpointDetailService,
  EndpointReconcile,
  EndpointService,
  EndpointStore,
  EndpointSwitchService,
  EndpointsStore,
  ExportService,
  FanOutReconcile,
  ModuleUsersService,
  ProcessingSource,
  PipelineChangeService,
  PipelineService,
  PipelineStore,
  QuarantineService,
  QuarantineStore,
  ResolutionSource,
  RetireReconcile,
  RoutingTableReconcile,
  SpecAcceptService,
  SplitChangeService,
  SplitService,
  SplitStore,
  TrafficService,
  TrafficStore,
  VersionUsersService,
  WantedObserve,
  WhyService,
];

export interface EndpointsOptions {
  /** Modules that export what `bind` refers to. */
  imports: NonNullable<ModuleMetadata['imports']>;
  /** Providers of `VERSIONS`, `MODULES`, `KEYS`, `CONFIG_TEXTS` and `PROCESSING_POLICY`. */
  bind: NonNullable<ModuleMetadata['providers']>;
}

/** Wants `FleetModule.forRoot`, `CHANGE_LOG` and `LOGGER` from global modules, and the global database module. */
@Module({})
export class EndpointsModule {
  static forRoot({ imports, bind }: EndpointsOptions): DynamicModule {
    return { module: EndpointsModule, imports, providers: [...parts, ...bind], exports: parts };
  }
}
