import type { ModelConfig } from '../control/model-config.ts';
import type { IndexEntry, ModelMetadata, ModelStatistics, ServerMetadata } from '../control/triton.client.ts';
import type { InferRequest, InferResponse } from '../wire/index.ts';

/** The models a server holds, as its protocol asks for them. Every method fails with a `ServingFault` in Triton's words. */
export interface ModelsHost {
  /** `version` left out: the highest ready one. Unknown or not ready is false, no fault. */
  isReady(name: string, version?: string): boolean;
  metadata(name: string, version?: string): ModelMetadata;
  config(name: string, version?: string): ModelConfig;
  /** `name` left out: every loaded model. */
  statistics(name?: string, version?: string): ModelStatistics[];
  infer(request: InferRequest): Promise<InferResponse>;
}

/** Parameters of a load: `config` is JSON text, `file:<path>` the bytes of a file. */
export type LoadParameters = Record<string, string | boolean | number | Uint8Array>;

export interface RepositoryHost {
  index(readyOnly: boolean): Promise<IndexEntry[]>;
  load(name: string, parameters: LoadParameters): Promise<void>;
  unload(name: string, parameters: LoadParameters): Promise<void>;
}

/** All that a server of Triton's protocol needs from the program behind it. */
export interface ServingHost {
  server(): ServerMetadata & { ready: boolean };
  models: ModelsHost;
  repository: RepositoryHost;
}
