/** What runs modules and pipelines: for routers and the command line. Authors of modules have the main entry. */
export { readBody } from './body.ts';
export { isShownHeader } from './contract.ts';
export { type IsolationSettings, ModuleHost } from './isolation/isolation.ts';
export type { PoolStats } from './isolation/pool-stats.ts';
export type { LoadedProcessing } from './loaded-module.ts';
export { loadProcessing } from './loaded-processing.ts';
export { type CompiledNode, type CompiledPipeline, compilePipeline } from './pipeline/compiled-pipeline.ts';
export { NodeLimit } from './pipeline/node-limit.ts';
export { type NodeTrace, type NodeTurn, runPipeline } from './pipeline/run-pipeline.ts';
export { checkTokenizer } from './text/tokenizer.ts';
