export {
  type Actor, type ApiKey, type AuditCheck, type AuditRow, apiKey, auditCheck, auditRow, type CreatedKey,
  type CreateJoinKey, type CreateKey, createdKey, createJoinKey, createKey, type InstallationStatus,
  installationStatus, type Role, role, roles, systemActor, whoami,
} from './access.schema.ts'; // biome-ignore format: one list
export { canonicalJson, digestOf, type Json, sha256Hex } from './digest.ts';
export { type Diagnosis, diagnosis, type Finding, finding, severities } from './doctor.schema.ts';
export {
  type DocumentHead, type DocumentPatch, diffSections, documentAnswer, documentHead, documentSchema, holdsRemovals,
  oldestDocumentSchema, patchSections,
} from './document.schema.ts'; // biome-ignore format: one list
export {
  type ApplyResult, applyResult, type Deployment, type DeploymentState, deployment, deploymentState, deploymentStates,
  type Endpoint, type EndpointGeneration, type EndpointModel, type EndpointSpec, type EndpointSpecInput,
  type EndpointStatus, endpoint, endpointGeneration, endpointModel, endpointSpec, endpointStatus, rollbackEndpoint, type SpecChange, specChange, type Traffic, traffic, type VersionSelect,
  versionSelect,
} from './endpoint.schema.ts'; // biome-ignore format: one list
export {
  type EndpointLog,
  type EndpointLogLine,
  endpointLog,
  endpointLogLine,
  switchEndpoint,
} from './endpoint-log.schema.ts';
export {
  type EndpointMetric, type EndpointMetrics, endpointMetric, endpointMetrics, metricName,
} from './endpoint-metrics.schema.ts'; // biome-ignore format: one list
export {
  computeCapability,
  type EngineSpec,
  type EngineTensor,
  engineSpec,
  engineTensor,
  type InstanceGroup,
  instanceGroup,
  knownPlatforms,
  platform,
  type ResolvedEngine,
  rateLimiter,
  resolvedEngine,
  tensorrtOrigin,
} from './engine.schema.ts';
export { errorCodeOf, shownMessage } from './error.ts';
export {
  type ArmEvidence, armEvidence, bucketCount, bucketSet, bucketsOf, type Feedback, type FeedbackClaims, type FeedbackResult, feedback, feedbackClaims, feedbackResult,
  type MetricEvidence, metricEvidence, type PairEvidence, pairEvidence, type RouteRollout, routeRollout,
  type WorkerEvidence, workerEvidence,
} from './evidence.schema.ts'; // biome-ignore format: one list
export {
  type ExternalMode,
  type ExternalView,
  externalMode,
  modelSource,
  type RegisterServer,
  registerServer,
  sourceModelName,
} from './external.schema.ts';
export { isSignedBy, peekFeedbackToken, readFeedbackKey, signFeedbackToken } from './feedback-token.ts';
export {
  type FixtureTolerance,
  type ModelRecording,
  type ModuleFixture,
  modelRecording,
  moduleFixture,
} from './fixture.schema.ts';
export {
  type DrainServer,
  drainServer,
  type Pool,
  pool,
  type ServerDetail,
  type ServerModel,
  serverDetail,
  serverModel,
  type UndrainServer,
  undrainServer,
} from './fleet.schema.ts';
export {
  type CollectGarbage,
  collectGarbage,
  type DeletedModel,
  deletedModel,
  type Garbage,
  type GarbageReport,
  garbage,
  garbageReport,
} from './gc.schema.ts';
export {
  type CustomChatTemplate,
  chatTemplateNames,
  customChatTemplate,
  type TextGenerationOptions,
  textGenerationOptions,
} from './generation.schema.ts';
export {
  type GoldenRequest,
  type GoldenTolerance,
  goldenElements,
  goldenNameOf,
  goldenRequest,
  isGoldenPath,
  maxGoldenBytes,
  mostGoldenRequests,
  parseGolden,
} from './golden.schema.ts';
export { fromHalfBytes, isHalfType, roundToHalf, toHalfBytes } from './half-number.ts';
export {
  type ChangeEvent,
  changeEvent,
  type Page,
  type Problem,
  paged,
  problem,
  type ServeError,
} from './http.schema.ts';
export {
  type ClipOptions, clipOptions, decodeOptions, type ImageClassificationOptions, type ImageEmbeddingOptions,
  type ImageInputOptions, imageClassificationOptions, imageEmbeddingOptions, imageRankingReply, imageRequest,
  preparationOptions, zeroShotImageRequest,
} from './image-processing.schema.ts'; // biome-ignore format: one list
export {
  checkManifest,
  type ManifestFile,
  manifestDigest,
  manifestFile,
  manifestFiles,
  maxFileBytes,
  maxManifestFiles,
  pathFault,
} from './manifest.schema.ts';
export {
  type BlobUpload, blobUpload, type ChangeTags, type CreateVersion, type CreateVersionFromUrl, changeTags,
  createVersion, createVersionFromUrl, type DescribeVersion, type DownloadUrl, describeVersion, downloadUrl,
  type FileFacts, type Framework, fileFacts, framework, frameworks, type ListModels, lineageFields, listModels,
  type Model, metadata, model, plainUses, type UsedModel, type Version, type VersionState, type VersionUpload,
  type VersionUses, version, versionState, versionStates, versionUpload, versionUses,
} from './model.schema.ts'; // biome-ignore format: one list
export {
  type BoundModule, type BoundProcessing, boundModule, boundProcessing, bundlePath,
 type ListModules, listModules, type ModuleFacts, type ModuleUpload, moduleBodies, moduleDigest,
  moduleFacts, moduleHooks, moduleUpload, type ProcessingModuleRecord, processingModule,
  type RegisterModule, registerModule, taskName,
} from './module.schema.ts'; // biome-ignore format: one list
export {
  blobKey,
  endpointName,
  modelName,
  moduleClaimKey,
  poolName,
  probeKey,
  projectName,
  sha256,
  tag,
  tritonModelName,
  versionClaimKey,
  versionNumber,
} from './names.schema.ts';
export {
  type Accelerator,
  accelerator,
  type ExecutionAccelerators,
  executionAccelerators,
  type Optimization,
  optimization,
} from './optimization.schema.ts';
export {
  maxParityBytes, mostParityTexts, parseParity, type TokenizerParity, tokenizerParity,
} from './parity.schema.ts'; // biome-ignore format: one list
export { tokenizerOfParity } from './parity-path.ts';
export { type FieldFault, fieldFaults, jsonSchemaOf, parseWith } from './parse.ts';
export { readPeerUrl, signPeerUrl } from './peer-url.ts';
export {
  type BoundPipeline, boundPipeline, type Pipeline, type PipelineGeneration, type PipelineNodeSight,
  type PipelineSpec, pipeline, pipelineCondition, pipelineGeneration, pipelineNode, pipelineNodeSight, pipelineSpec,
  pipelineValue,
} from './pipeline.schema.ts'; // biome-ignore format: one list
export { findCycle, nodeInput, nodeLevels, nodeWaits, pipelineFaults } from './pipeline-graph.ts';
export { isPick, type Pick, type PickStep, parsePick, picksIn } from './pipeline-pick.ts';
export * from './plain.ts';
export {
  type BuiltinName,
  builtinOptions,
  type PassthroughOptions,
  parseBuiltinOptions,
  passthroughOptions,
  type TextEmbeddingOptions,
  textEmbeddingOptions,
} from './processing.schema.ts';
export {
  type Isolation, isolation, isolations, moduleName, moduleReference, type ProcessingSpec, processingSpec, splitModule,
} from './processing-spec.schema.ts'; // biome-ignore format: one list
export {
  type ArmReading, type CommandRollout, commandRollout, type Decision, type DecisionInput, decision, decisionInput, 
  type EpochCounts, type Explanation, explanation, type FeedbackReading, feedbackReading,isOver, type MetricInput, type MetricReading, type QuarantineEntry,
  quarantineEntry, type Rollout, type RolloutArm, type RolloutEvent, type RolloutRun, type RolloutSimulation,
  type RolloutState, type RolloutVerb, rollout, rolloutArm, rolloutEvent, rolloutSimulation, rolloutStates, rolloutVerb,
  rolloutVerbs, type SimulateRollout, type StartRollout, simulateRollout, startRollout, type Verdict, verdicts,
} from './rollout.schema.ts'; // biome-ignore format: one list
export {
  type Comparison, comparison, type FlagMetric, type Margin, namedPolicies, type PolicyReference, type ProvidedMetric,
  policyOf, policyReference, type RolloutPolicy, type RolloutPolicyInput, rolloutPolicy, type ShadowPolicy,
} from './rollout-policy.schema.ts'; // biome-ignore format: one list
export {
  type ArmStats, armStats, latencyBoundsMs, type Route, type Router, type RouterReport, type RouteTarget,
  type RoutingTable, type RoutingTableAnswer, reportAnswer, route, router, routerReport, routeTarget, routingTable,
  routingTableAnswer, type TableKey, type TableServer, tableKey, tableSections, tableServer,
} from './routing-table.schema.ts'; // biome-ignore format: one list
export {
  dynamicBatching,
  type QueuePolicy,
  queuePolicy,
  type SequenceBatching,
  sequenceBatching,
  type Warmup,
  warmup,
  warmupInput,
} from './scheduling.schema.ts';
export {
  type BlobUrls, blobUrls, blobUrlsRequest, type DesiredAnswer, type DesiredModel, type DesiredServer, desiredAnswer,
  desiredModel, desiredServer, type Enrol, type Enrolled, enrol, enrolled, type ObservedAnswer, type ObservedModel,
  type ObservedReport, type ObservedServer, type ObservedState, observedAnswer, observedModel, observedReport,
  observedServer, observedState, observedStates, type Server, type ServerFacts, type ServerUsage, type Supervision,
  server, serverFacts, serverUsage, supervision,
} from './server.schema.ts'; // biome-ignore format: one list
export { type Split, type SplitSpec, type SplitSpecInput, split, splitSpec } from './split.schema.ts';
export { type EndpointStats, endpointStats, type VersionCount, versionCount } from './stats.schema.ts';
export {
  type ChatMessage, chatMessage, chatRoles, type TaskTypes, type TextGenerationEvent, type TextGenerationReply,
  type TextGenerationRequest, type TokenLogprob, tasks, textEmbeddingReply, textEmbeddingRequest, textGenerationEvent,
  textGenerationReply, textGenerationRequest, tokenLogprob,
} from './tasks.schema.ts'; // biome-ignore format: one list
export { dataType, signature, tensorSpec } from './tensor.schema.ts';
export {
  type TextClassificationOptions, type TextTokensOptions, textClassificationOptions, textClassificationReply,
  textClassificationRequest, textTokensOptions,
} from './text-processing.schema.ts'; // biome-ignore format: one list
export {
  type ConfigFacts,
  type ConfigsRead,
  configFacts,
  configsRead,
  type EndpointExport,
  type ExportedModel,
  endpointExport,
  exportedModel,
  type ReadConfigs,
  readConfigs,
} from './transfer.schema.ts';
export {
  type CreatedWebhook, type CreateWebhook, createdWebhook, createWebhook, type Webhook, type WebhookEvent,
  type WebhookPayload, type WebhookTest, webhook, webhookEvents, webhookName, webhookPayload, webhookTest,
} from './webhook.schema.ts'; // biome-ignore format: one list
export { type EndpointWhy, endpointWhy, type WhyStep, whyStep, whySteps } from './why.schema.ts';
