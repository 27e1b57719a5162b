import type { EngineSpec, ManifestFile } from '@perch/contracts';

/** Triton's word for the folder of a model, in the parameter of a Python model's environment. */
const modelFolder = '$$TRITON_MODEL_DIRECTORY/';
const environment = 'EXECUTION_ENV_PATH';

/** The file below the model's folder that an `EXECUTION_ENV_PATH` names; undefined: a path of the server's own. */
export const environmentFile = (value: string | undefined): string | undefined =>
  value?.startsWith(modelFolder) ? value.slice(modelFolder.length) : undefined;

/** A plain file name given as the environment is a file of the version, so it is found in the model's folder. */
export function withEnvironment(engine: EngineSpec, files: readonly ManifestFile[]): EngineSpec {
  const value = engine.parameters?.[environment];
  if (value === undefined || !files.some(({ path }) => path === value)) return engine;
  return { ...engine, parameters: { ...engine.parameters, [environment]: `${modelFolder}${value}` } };
}

/** Paths below the model's folder, beside the version directory, that settings name: Triton looks for them there. */
export function namedFiles(engine: EngineSpec): string[] {
  const labels = (engine.outputs ?? []).map(({ labelFile }) => labelFile);
  const warmups = (engine.warmup ?? []).flatMap(({ inputs }) =>
    Object.values(inputs).map(({ data }) => (typeof data === 'string' ? undefined : `warmup/${data.file}`)),
  );
  const states = (engine.sequenceBatching?.states ?? []).flatMap(({ initial }) =>
    (initial ?? []).map(({ file }) => (file === undefined ? undefined : `initial_state/${file}`)),
  );
  const archive = environmentFile(engine.parameters?.[environment]);
  return [...new Set([...labels, ...warmups, ...states, archive])].filter((path) => path !== undefined);
}
