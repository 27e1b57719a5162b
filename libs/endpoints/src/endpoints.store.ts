import { Injectable } from '@nestjs/common';
import { FleetStore } from '@perch/fleet';
import { DeploymentStore } from './deployment.store.ts';
import { EndpointStore } from './endpoint.store.ts';
import { PipelineStore } from './pipeline/pipeline.store.ts';
import { SplitStore } from './split/split.store.ts';
import { TrafficStore } from './traffic/traffic.store.ts';

/** Names beside those of endpoints. */
@Injectable()
export class ComposedStore {
  constructor(
    readonly splits: SplitStore,
    readonly pipelines: PipelineStore,
  ) {}
}

/** The stores that endpoints are kept in, side by side. */
@Injectable()
export class EndpointsStore {
  constructor(
    readonly endpoints: EndpointStore,
    readonly deployments: DeploymentStore,
    readonly fleet: FleetStore,
    readonly composed: ComposedStore,
    readonly traffic: TrafficStore,
  ) {}

  get splits(): SplitStore {
    return this.composed.splits;
  }
  get pipelines(): PipelineStore {
    return this.composed.pipelines;
  }
}
