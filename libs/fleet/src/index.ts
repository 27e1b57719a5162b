export { DesiredReconcile } from './desired.reconcile.ts';
export { type AnswerText, readDesired, readTable } from './documents/document.answer.ts';
export { type Entry, entryOf, type Follower, planEntries } from './documents/document.plan.ts';
export { DocumentSource } from './documents/document.source.ts';
export { DocumentStore, documentChannel, routingTableDocument, serverDocument } from './documents/document.store.ts';
export { type DrainOptions, DrainService } from './drain.service.ts';
export { EnrolmentService } from './enrolment.service.ts';
export {
  type ExternalPlan,
  type ExternalSight,
  heldVersionKey,
  inlineLimitBytes,
  planExternal,
} from './external/external.plan.ts';
export { ExternalService } from './external/external.service.ts';
export { type ExternalKnowledge, ExternalSource } from './external/external.source.ts';
export { type ExternalRow, ExternalStore, type Holding } from './external/external.store.ts';
export { FleetModule } from './fleet.module.ts';
export { FleetStore } from './fleet.store.ts';
export { fleetGarbage } from './fleet-garbage.ts';
export { FleetViewService } from './fleet-view.service.ts';
export { Installation, type InstallationState } from './installation.service.ts';
export { JOIN_KEYS, type JoinGrant, type JoinKeySource } from './join-key.source.ts';
export { defaultFleetOptions, FLEET_OPTIONS, type FleetOptions } from './options.ts';
export { PeerService } from './peer.service.ts';
export { CapacityStore, type PlaceableModels } from './placement/capacity.store.ts';
export type { Memory } from './placement/memory.plan.ts';
export { planPlacement } from './placement/placement.plan.ts';
export { type NewPlacement, type Pair, PlacementStore } from './placement/placement.store.ts';
export type { Placement } from './placement/placement-row.ts';
export {
  type CurrentPlacement,
  type ModelFacts,
  noFacts,
  type PlacementPlan,
  type PlannedDeployment,
  type PlannedServer,
} from './placement/placement-world.ts';
export { type PlacementSight, type ServerSight, SightStore } from './placement/sight.store.ts';
export { type ModelVariant, type NeededModel, neededName, type Requirements } from './placement/variant.ts';
export { type RouterFacts, unloadObstacle } from './router.decide.ts';
export { RouterService, routerLiveMs } from './router.service.ts';
export { RouterStatsService } from './router-stats.service.ts';
export { ServerService } from './server.service.ts';
export { type Presence, ServerStore } from './server.store.ts';
export { SweepReconcile } from './sweep.reconcile.ts';
export { theOnlyKey, work } from './work.ts';
