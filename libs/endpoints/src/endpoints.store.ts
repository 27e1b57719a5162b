import { Injectable } from '@nestjs/common';
import { FleetStore } from '@perch/fleet';
import { DeploymentStore } from './deployment.store.ts';
import { EndpointStore } from './endpoint.store.ts';
import { SplitStore } from './split/split.store.ts';
import { TrafficStore } from './traffic/traffic.store.ts';

/** The stores that endpoints are kept in, side by side. */
@Injectable()
export class EndpointsStore {
  constructor(
    readonly endpoints: EndpointStore,
    readonly deployments: DeploymentStore,
    readonly fleet: FleetStore,
    readonly splits: SplitStore,
    readonly traffic: TrafficStore,
  ) {}
}
