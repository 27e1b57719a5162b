import type { DynamicModule, Provider, Type } from '@nestjs/common';
import { KeyService } from '@perch/access';
import {
  CONFIG_TEXTS,
  EndpointsModule,
  KEYS,
  MODULES,
  PROCESSING_POLICY,
  type ProcessingPolicy,
  RegistrySource,
  VERSIONS,
} from '@perch/endpoints';
import { ApplyController } from './admin-api/apply.controller.ts';
import { DeletionController } from './admin-api/deletion.controller.ts';
import { EndpointController } from './admin-api/endpoint.controller.ts';
import { EndpointLogService } from './admin-api/endpoint-log.service.ts';
import { EndpointTrafficController } from './admin-api/endpoint-traffic.controller.ts';
import { EndpointTruthController } from './admin-api/endpoint-truth.controller.ts';
import { ExportController } from './admin-api/export.controller.ts';
import { FleetController } from './admin-api/fleet.controller.ts';
import { FleetExternalController } from './admin-api/fleet-external.controller.ts';
import { FleetServerController } from './admin-api/fleet-server.controller.ts';
import { PipelineController } from './admin-api/pipeline.controller.ts';
import { SplitController } from './admin-api/split.controller.ts';
import { configTexts } from './config-text.source.ts';
import { CONFIG, type ControlPlaneConfig } from './control-plane.config.ts';
import { BlobController } from './internal-api/blob.controller.ts';
import { EnrolController } from './internal-api/enrol.controller.ts';
import { RouterController } from './internal-api/router.controller.ts';
import { ServerController } from './internal-api/server.controller.ts';
import { AutoUpdateLoop } from './loops/auto-update.loop.ts';
import { CensusLoop } from './loops/census.loop.ts';
import { CensusSource } from './loops/census.source.ts';
import { ExternalApply } from './loops/external.apply.ts';
import { ExternalLoop } from './loops/external.loop.ts';
import { ExternalReconcile } from './loops/external.reconcile.ts';
import { ExternalTritons } from './loops/external-triton.client.ts';
import { PlacementLoop } from './loops/placement.loop.ts';
import { RoutingTableLoop } from './loops/routing-table.loop.ts';

export const endpointControllers: Type[] = [
  EndpointController,
  SplitController,
  PipelineController,
  ApplyController,
  ExportController,
  EndpointTruthController,
  EndpointTrafficController,
  DeletionController,
  FleetController,
  FleetServerController,
  FleetExternalController,
  BlobController,
  EnrolController,
  RouterController,
  ServerController,
];

/** For the module that imports the fleet, the registry, `endpointsModule(…)` and `promotionModule(…)`. */
export const endpointProviders: Provider[] = [
  EndpointLogService,
  AutoUpdateLoop,
  ExternalApply,
  ExternalLoop,
  ExternalReconcile,
  ExternalTritons,
  PlacementLoop,
  RoutingTableLoop,
  CensusSource,
  CensusLoop,
];

/** `registry`: the very module that the program imports, so that there is one registry. */
export const endpointsModule = (registry: DynamicModule): DynamicModule =>
  EndpointsModule.forRoot({
    imports: [registry],
    bind: [
      { provide: VERSIONS, useClass: RegistrySource },
      { provide: MODULES, useExisting: VERSIONS },
      {
        provide: PROCESSING_POLICY,
        inject: [CONFIG],
        useFactory: (config: ControlPlaneConfig): ProcessingPolicy => ({
          publisherIsolation: config.PERCH_PUBLISHER_ISOLATION,
        }),
      },
      { provide: KEYS, useExisting: KeyService },
      { provide: CONFIG_TEXTS, useValue: configTexts },
    ],
  });
