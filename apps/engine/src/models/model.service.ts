import type { ModelConfig, ModelMetadata, ModelStatistics } from '@perch/triton/control';
import { type InferRequest, type InferResponse, type ModelsHost, ServingFault } from '@perch/triton/server';
import type { RepositoryService } from '../repository/repository.service.ts';
import type { ModelVersion } from './model-version.ts';
import { type DeclaredTensor, fullShape } from './signature.ts';

/** Answers about, and from, the models that are loaded. */
export class ModelService implements ModelsHost {
  private readonly repository: RepositoryService;
  private stopping = false;

  constructor(repository: RepositoryService) {
    this.repository = repository;
  }

  /** Refuses every request from here on. */
  stop(): void {
    this.stopping = true;
  }

  isReady(name: string, version?: string): boolean {
    const entry = this.repository.find(name);
    if (!entry) return false;
    return version === undefined ? entry.ready().length > 0 : entry.versions.get(version)?.state === 'READY';
  }

  metadata(name: string, version?: string): ModelMetadata {
    const { config, declared } = this.select(name, version);
    const shown = (tensor: DeclaredTensor) => ({
      name: tensor.name,
      datatype: tensor.datatype,
      shape: fullShape(declared, tensor.dims),
    });
    return {
      name,
      versions: this.repository
        .find(name)!
        .ready()
        .map(([ready]) => ready),
      platform: config.platform || config.backend || '',
      inputs: declared.inputs.map(shown),
      outputs: declared.outputs.map(shown),
    };
  }

  config(name: string, version?: string): ModelConfig {
    return this.select(name, version).config;
  }

  statistics(name?: string, version?: string): ModelStatistics[] {
    const found: ModelStatistics[] = [];
    for (const [model, number, runtime] of this.repository.ready())
      if ((name === undefined || model === name) && (version === undefined || number === version))
        found.push(runtime.snapshot());
    if (name !== undefined && found.length === 0)
      throw new ServingFault('invalid_argument', `requested model '${name}' is not available`);
    return found;
  }

  async infer(request: InferRequest): Promise<InferResponse> {
    if (this.stopping) throw new ServingFault('unavailable', 'Server exiting');
    return this.select(request.modelName, request.modelVersion || undefined).infer(request);
  }

  private select(name: string, version: string | undefined): ModelVersion {
    const unknown = (words: string) => new ServingFault('not_found', `Request for unknown model: '${name}' ${words}`);
    const entry = this.repository.find(name);
    if (!entry) throw unknown('is not found');
    if (version === undefined) {
      const highest = entry.ready().at(-1);
      if (!highest) throw unknown('has no available versions');
      return highest[1];
    }
    const known = entry.versions.get(String(BigInt(version)));
    if (!known) throw unknown(`version ${version} is not found`);
    if (known.state === 'READY' && known.runtime) return known.runtime;
    throw new ServingFault(
      'unavailable',
      `Request for unknown model: '${name}' version ${version} is not at ready state`,
    );
  }
}
