import { type DynamicModule, Global, Module, type Provider, type Type } from '@nestjs/common';
import { JoinKeyService } from '@perch/access';
import { FleetModule, JOIN_KEYS } from '@perch/fleet';
import { AuditController } from './admin-api/audit.controller.ts';
import { DoctorController } from './admin-api/doctor.controller.ts';
import { EventController } from './admin-api/event.controller.ts';
import { GarbageController } from './admin-api/garbage.controller.ts';
import { GarbageService } from './admin-api/garbage.service.ts';
import { JoinKeyController, KeyController } from './admin-api/key.controller.ts';
import { registryControllers, registryModule, registryProviders } from './admin-api/registry.controllers.ts';
import { StatusController } from './admin-api/status.controller.ts';
import { WebhookController } from './admin-api/webhook.controller.ts';
import type { ControlPlaneConfig } from './control-plane.config.ts';
import { DoctorService } from './doctor/doctor.service.ts';
import { DoctorFleetSource } from './doctor/doctor-fleet.source.ts';
import { endpointControllers, endpointProviders, endpointsModule } from './endpoints.parts.ts';
import { promotionControllers, promotionModule, promotionProviders } from './promotion.parts.ts';

/** Every controller of the program; those below /api/v1 make up openapi.json. */
export const controllers: Type[] = [
  AuditController,
  DoctorController,
  EventController,
  GarbageController,
  JoinKeyController,
  KeyController,
  StatusController,
  WebhookController,
  ...registryControllers,
  ...endpointControllers,
  ...promotionControllers,
];

/** What the libs leave to others: each port with the one part of this program that fills it. */
const ports: Provider[] = [{ provide: JOIN_KEYS, useExisting: JoinKeyService }];

@Global()
@Module({ providers: ports, exports: ports })
export class PortsModule {}

export const partProviders: Provider[] = [
  GarbageService,
  DoctorFleetSource,
  DoctorService,
  ...registryProviders,
  ...endpointProviders,
  ...promotionProviders,
];

/** The libs, set up. `publicUrl` is asked when a URL is signed, so that it may be known late. */
export const partModules = (config: ControlPlaneConfig, publicUrl: () => string): (DynamicModule | Type)[] => {
  const registry = registryModule(config, publicUrl);
  const fleet = FleetModule.forRoot({
    routerGraceMs: config.PERCH_ROUTER_GRACE_MS,
    documentSchema: config.PERCH_DOCUMENT_SCHEMA,
  });
  const endpoints = endpointsModule(registry);
  return [PortsModule, registry, fleet, endpoints, promotionModule(endpoints)];
};
