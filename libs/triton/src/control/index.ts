export { type FaultKind, faultKinds, TritonFault } from '../wire/index.ts';
export { configFaults, validateModelConfig } from './config-faults.ts';
export {
  type ConfigDynamicBatching,
  type ConfigInstanceGroup,
  type ConfigQueuePolicy,
  type ConfigTensor,
  configTypeOf,
  type ModelConfig,
  parseModelConfig,
  protocolTypeOf,
  writeModelConfig,
} from './model-config.ts';
export { mergeModelConfig, renderModelConfig } from './render-config.ts';
export {
  type CallOptions,
  createTritonControl,
  type Duration,
  type IndexEntry,
  type IndexState,
  type InlineModel,
  type LoadOptions,
  type ModelMetadata,
  type ModelStatistics,
  type ServerMetadata,
  type TritonControl,
  type TritonControlOptions,
} from './triton.client.ts';
