import type { ConfigSight, DeclaredTensor } from '@perch/endpoints';
import { environmentFile } from '@perch/endpoints';
import { type ConfigTensor, type ModelConfig, protocolTypeOf, writeModelConfig } from '@perch/triton/control';

const tensorOf = ({ name, data_type, dims, reshape }: ConfigTensor): DeclaredTensor => ({
  name: name ?? '',
  type: protocolTypeOf(String(data_type ?? '')),
  dims: dims ?? [],
  ...(reshape ? { reshape: reshape.shape ?? [] } : {}),
});

function policyOf({ version_policy: policy }: ModelConfig): ConfigSight['versionPolicy'] {
  if (!policy) return undefined;
  if (policy.all) return { kind: 'all', count: 0, versions: [] };
  if (policy.specific) return { kind: 'specific', count: 0, versions: (policy.specific.versions ?? []).map(Number) };
  return { kind: 'latest', count: policy.latest?.num_versions ?? 1, versions: [] };
}

type Warmups = { inputs?: Record<string, { input_data_file?: string }> }[];
type States = { state?: { initial_state?: { data_file?: string }[] }[] };

/** Files below the model's folder, beside the version directory. */
function namedFiles(config: ModelConfig): string[] {
  const warmups = ((config['model_warmup'] as Warmups | undefined) ?? []).flatMap(({ inputs }) =>
    Object.values(inputs ?? {}).map(({ input_data_file: file }) => file && `warmup/${file}`),
  );
  const states = ((config.sequence_batching as States | undefined)?.state ?? []).flatMap(({ initial_state }) =>
    (initial_state ?? []).map(({ data_file: file }) => file && `initial_state/${file}`),
  );
  const labels = (config.output ?? []).map(({ label_filename }) => label_filename);
  const archive = environmentFile(config.parameters?.['EXECUTION_ENV_PATH']?.string_value);
  return [...new Set([...labels, ...warmups, ...states, archive])].filter(
    (path) => path !== undefined && path !== '',
  ) as string[];
}

type Accelerators = { gpu_execution_accelerator?: unknown[]; cpu_execution_accelerator?: unknown[] };

/** What a configuration decides that placement, layout and checks look at. */
export function sightOfConfig(config: ModelConfig): Partial<ConfigSight> {
  const accelerators = (config['optimization'] as { execution_accelerators?: Accelerators } | undefined)
    ?.execution_accelerators;
  const gpu = (accelerators?.gpu_execution_accelerator ?? []).length > 0;
  const cpu = (accelerators?.cpu_execution_accelerator ?? []).length > 0;
  const versionPolicy = policyOf(config);
  return {
    ...(config.input?.length ? { inputs: config.input.map(tensorOf) } : {}),
    ...(config.output?.length ? { outputs: config.output.map(tensorOf) } : {}),
    ...(versionPolicy
      ? { versionPolicy, withoutPolicy: writeModelConfig({ ...config, version_policy: undefined }) }
      : {}),
    wantsGpu: gpu || (config.instance_group ?? []).some(({ kind }) => kind === 'KIND_GPU'),
    namesAccelerators: gpu || cpu,
    ...(config.name ? { name: config.name } : {}),
    ccModelFilenames: (config['cc_model_filenames'] as Record<string, string> | undefined) ?? {},
    ...(config.default_model_filename ? { defaultModelFilename: config.default_model_filename } : {}),
    namedFiles: namedFiles(config),
  };
}
