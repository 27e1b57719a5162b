export { type Census, CensusStore } from './census.store.ts';
export { EndpointReconcile } from './endpoint.reconcile.ts';
export { type ApplyOptions, EndpointService } from './endpoint.service.ts';
export { EndpointDetailService } from './endpoint-detail.service.ts';
export { endpointGarbage } from './endpoint-garbage.ts';
export { EndpointSwitchService, type SwitchOptions } from './endpoint-switch.service.ts';
export { EndpointsModule, type EndpointsOptions } from './endpoints.module.ts';
export { ExportService } from './export.service.ts';
export { FanOutReconcile } from './fan-out.reconcile.ts';
export { ModuleUsersService } from './module-users.service.ts';
export { type PipelineApplyOptions, PipelineService } from './pipeline/pipeline.service.ts';
export { RegistrySource } from './registry.source.ts';
export { environmentFile } from './resolve/named-file.plan.ts';
export type { ProcessingPolicy } from './resolve/processing.plan.ts';
export { MODULES, type ModuleSource, PROCESSING_POLICY, ProcessingSource } from './resolve/processing.source.ts';
export { type ConfigFile, configFileFaults, configFiles } from './resolve/upload-check.plan.ts';
export { defaultMaxVersions, selectVersions, type VersionFacts } from './resolve/version.plan.ts';
export {
  CONFIG_TEXTS,
  type ConfigSight,
  type ConfigTexts,
  type DeclaredTensor,
  KEYS,
  type KeySource,
  type ServableVersion,
  VERSIONS,
  type VersionSource,
} from './resolve/version.source.ts';
export { buildRoutingTable, routeFault, type TableSnapshot } from './route/routing-table.plan.ts';
export { RoutingTableReconcile } from './route/routing-table.reconcile.ts';
export { nameSource, parseSpec, refuseKind } from './spec.plan.ts';
export { type SplitApplyOptions, SplitService } from './split/split.service.ts';
export { QuarantineService } from './traffic/quarantine.service.ts';
export type { NewQuarantine } from './traffic/quarantine.store.ts';
export {
  type ForcedRollout,
  noForce,
  rolloutWork,
  type TrafficDeployment,
  type TrafficForce,
  type TrafficSight,
  type TrafficWish,
} from './traffic/traffic.plan.ts';
export { type Proposal, TrafficService } from './traffic/traffic.service.ts';
export { VersionUsersService } from './version-users.service.ts';
export { changeLine, changeWords, consoleLines, type RecordedChange } from './why/log.decide.ts';
export { WhyService } from './why/why.service.ts';
