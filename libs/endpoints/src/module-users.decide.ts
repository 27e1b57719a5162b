/** So long after it was replaced a generation of an endpoint holds its module: somebody may roll back to it. */
export const recentDays = 7;

/** Everything that names one module by number. */
export interface ModuleUses {
  /** Whose spec in force names it. */
  endpoints: readonly string[];
  /** Not retired ones that are bound to it. */
  deployments: readonly { endpoint: string; version: number }[];
  /** The newest generation of an endpoint that named it and was in force within `recentDays`. */
  generations: readonly { endpoint: string; generation: number }[];
  /** With a node that names it: now, or in a generation in force within `recentDays`. */
  pipelines?: readonly { name: string; now: boolean }[];
  /** `project/name@3`: versions that carry it. */
  versions: readonly string[];
}

/** Who holds a module back, in words and in order; of one endpoint the strongest reason alone. */
export function decideModuleUsers({
  endpoints,
  deployments,
  generations,
  versions,
  pipelines = [],
}: ModuleUses): string[] {
  const words = new Map<string, string>();
  for (const { endpoint, generation } of generations)
    words.set(endpoint, `endpoint ${endpoint} (generation ${generation}, which may be rolled back to)`);
  for (const { endpoint, version } of deployments) words.set(endpoint, `endpoint ${endpoint} (version ${version})`);
  for (const endpoint of endpoints) words.set(endpoint, `endpoint ${endpoint}`);
  for (const { name, now } of pipelines)
    words.set(
      `pipeline ${name}`,
      `pipeline ${name}${now ? '' : ' (an older generation, which may be rolled back to)'}`,
    );
  return [...words.values(), ...versions.map((version) => `version ${version} (carries it)`)].sort();
}
