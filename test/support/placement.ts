import type { DesiredModel, ServerFacts } from '@perch/contracts';
import type {
  CurrentPlacement,
  ModelVariant,
  NeededModel,
  PlannedDeployment,
  PlannedServer,
  Requirements,
} from '@perch/fleet';

export const gibibyte = 1_073_741_824;

/** Builders that fill every field; a test names the one that matters. */
export const serverFacts = (more: Partial<ServerFacts> = {}): ServerFacts => ({
  host: 'h', supervised: true, backends: null, tensorrt: null, onnxruntime: null, gpus: [], ramBytes: null, ...more,
}); // biome-ignore format: one record

export const gpu = (more: Partial<ServerFacts['gpus'][number]> = {}): ServerFacts['gpus'][number] => ({
  uuid: 'GPU-1', name: 'H100', computeCapability: '9.0', totalBytes: 80 * gibibyte, ...more,
}); // biome-ignore format: one record

export const plannedServer = (id: string, more: Partial<PlannedServer> = {}): PlannedServer => ({
  id, name: id, presence: 'live', labels: {}, reported: true, drain: null, external: false, device: 'cpu', facts: null, usage: null, models: 0,
  moving: 0, placed: { ramBytes: 0, gpuBytes: 0 }, ...more,
}); // biome-ignore format: one record

export const desiredModel = (digest: string, bytes = 0, more: Partial<DesiredModel['engine']> = {}): DesiredModel => ({
  digest,
  files: [{ path: '1/model.onnx', sha256: 'a'.repeat(64), size: bytes }],
  engine: {
    platform: 'onnxruntime_onnx', backend: 'onnxruntime', maxBatchSize: 0, dynamicBatching: null, instances: [], inputs: [],
    outputs: [], parameters: {}, defaultModelFilename: null, config: null, ...more,
  }, // biome-ignore format: one record
});

export const variant = (
  tritonModel: string,
  requires: Partial<Requirements> = {},
  more: Partial<Pick<ModelVariant, 'needs'>> & { bytes?: number; engine?: Partial<DesiredModel['engine']> } = {},
): ModelVariant => ({
  tritonModel,
  model: desiredModel(`digest of ${tritonModel}`, more.bytes ?? 0, more.engine),
  needs: more.needs ?? [],
  requires: { backend: 'onnxruntime', gpu: false, tensorrt: null, onnx: null, memoryBytes: null, ...requires },
});

export const needed = (tritonModel: string, as: string | null = null, of?: string, bytes = 0): NeededModel => ({
  tritonModel,
  as,
  model: desiredModel(`digest of ${tritonModel}`, bytes),
  ...(of ? { of } : {}),
});

export const plannedDeployment = (id: string, more: Partial<PlannedDeployment> = {}): PlannedDeployment => ({
  id,
  endpoint: `endpoint of ${id}`,
  replicas: 1,
  minReplicas: 1,
  variants: [variant(`m-${id}`)],
  ...more,
});

export const currentPlacement = (
  deployment: string,
  server: string,
  more: Partial<CurrentPlacement> = {},
): CurrentPlacement => ({ deployment, server, tritonModel: `m-${deployment}`, ready: true, failure: null, ...more });
