import { Injectable } from '@nestjs/common';
import { DocumentStore } from './documents/document.store.ts';
import { CapacityStore } from './placement/capacity.store.ts';
import { PlacementStore } from './placement/placement.store.ts';
import { RouterStore } from './router.store.ts';
import { ServerStore } from './server.store.ts';

/** The stores of the fleet side by side: most changes touch more than one table. */
@Injectable()
export class FleetStore {
  constructor(
    readonly servers: ServerStore,
    readonly routers: RouterStore,
    readonly placements: PlacementStore,
    readonly documents: DocumentStore,
    readonly capacity: CapacityStore,
  ) {}
}
