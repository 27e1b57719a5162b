import type { ConfigFacts } from '@perch/contracts';

/** One model folder of a Triton repository. */
export interface RepositoryFolder {
  name: string;
  /** Paths below the folder, in order. */
  files: readonly string[];
  /** Numbers of its version folders, empty ones too. */
  versions: readonly number[];
  /** Folders that look like versions and are none for Triton (`01`, `2.tmp`). */
  oddVersions: readonly string[];
  /** What its config.pbtxt says; null: it has none. */
  config: ConfigFacts | null;
  /** Names that its Python code hands to inference requests. */
  calls: readonly string[];
}

export const stepsInto = ({ config }: RepositoryFolder): string[] => [
  ...new Set((config?.steps ?? []).map(({ model }) => model)),
];

/** The version that steps of these folders name of a model; undefined: the newest will do. */
export function pinnedVersion(name: string, members: readonly RepositoryFolder[]): number | 'several' | undefined {
  const named = members.flatMap(({ config }) => config?.steps ?? []).filter(({ model }) => model === name);
  const pinned = [...new Set(named.map(({ version }) => version).filter((version) => version > 0))];
  return pinned.length > 1 ? 'several' : pinned[0];
}

/** Names of models in `model_name="…"` arguments, as business-logic scripting writes them. */
export const calledModels = (code: string): string[] => [
  ...new Set([...code.matchAll(/\bmodel_name\s*=\s*(["'])([^"'\n]{1,128})\1/g)].map((match) => match[2]!)),
];

export const versionNumberOf = (folder: string): number | undefined =>
  /^[1-9]\d{0,18}$/.test(folder) && Number.isSafeInteger(Number(folder)) ? Number(folder) : undefined;
