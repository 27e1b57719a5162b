import { type DynamicModule, Module } from '@nestjs/common';
import { DesiredReconcile } from './desired.reconcile.ts';
import { DocumentParts, DocumentSource } from './documents/document.source.ts';
import { DocumentStore } from './documents/document.store.ts';
import { DrainService } from './drain.service.ts';
import { EnrolmentService } from './enrolment.service.ts';
import { ExternalService } from './external/external.service.ts';
import { ExternalSource } from './external/external.source.ts';
import { ExternalStore } from './external/external.store.ts';
import { FleetStore } from './fleet.store.ts';
import { FleetViewService } from './fleet-view.service.ts';
import { Installation } from './installation.service.ts';
import { defaultFleetOptions, FLEET_OPTIONS, type FleetOptions } from './options.ts';
import { PeerService } from './peer.service.ts';
import { PeerStore } from './peer.store.ts';
import { CapacityStore } from './placement/capacity.store.ts';
import { HeldStore } from './placement/held.store.ts';
import { PlacementStore } from './placement/placement.store.ts';
import { SightStore } from './placement/sight.store.ts';
import { RouterService } from './router.service.ts';
import { RouterStore } from './router.store.ts';
import { RouterStatsService } from './router-stats.service.ts';
import { RouterStatsStore } from './router-stats.store.ts';
import { ServerService } from './server.service.ts';
import { ServerStore } from './server.store.ts';
import { ServerModelStore } from './server-model.store.ts';
import { SweepReconcile } from './sweep.reconcile.ts';

const parts = [
  CapacityStore,
  DesiredReconcile,
  DocumentParts,
  DocumentSource,
  DocumentStore,
  DrainService,
  EnrolmentService,
  ExternalService,
  ExternalSource,
  ExternalStore,
  FleetStore,
  FleetViewService,
  HeldStore,
  Installation,
  PeerService,
  PeerStore,
  PlacementStore,
  RouterService,
  RouterStatsService,
  RouterStatsStore,
  RouterStore,
  ServerModelStore,
  ServerService,
  ServerStore,
  SightStore,
  SweepReconcile,
];

/** Wants a global `CHANGE_LOG` and the global database module. */
@Module({})
export class FleetModule {
  static forRoot(options: Partial<FleetOptions> = {}): DynamicModule {
    const settings = { provide: FLEET_OPTIONS, useValue: { ...defaultFleetOptions, ...options } };
    return { module: FleetModule, providers: [...parts, settings], exports: [...parts, settings], global: true };
  }
}
