import type { ModelConfig } from '@perch/triton/control';

const largest = 9_223_372_036_854_775_807n;

/** The version number of a folder's name, read up to the first character that is no digit; undefined: no version. */
export function versionOf(folder: string): string | undefined {
  const digits = /^[1-9][0-9]*/.exec(folder)?.[0];
  return digits !== undefined && BigInt(digits) <= largest ? digits : undefined;
}

export const byNumber = (a: string, b: string): number => (BigInt(a) < BigInt(b) ? -1 : BigInt(a) > BigInt(b) ? 1 : 0);

/** The versions a policy chooses among those on disk, lowest first; default is the highest one. */
export function chooseVersions(onDisk: readonly string[], policy: ModelConfig['version_policy']): string[] {
  const sorted = [...new Set(onDisk)].sort(byNumber);
  if (policy?.all) return sorted;
  if (policy?.specific) {
    const wanted = new Set((policy.specific.versions ?? []).map(String));
    return sorted.filter((version) => wanted.has(version));
  }
  const count = policy?.latest?.num_versions || 1;
  return sorted.slice(Math.max(0, sorted.length - count));
}
