import { AppError, type ChangeTags, type DescribeVersion, type ManifestFile, type Version } from '@perch/contracts';

type Described = Pick<Version, 'description' | 'metadata' | 'lineage'>;

/** Fields of `wish` that differ from what is; an absent field stays, `metadata` and `lineage` are replaced whole. */
export function describingChange(now: Described, wish: DescribeVersion): Partial<Described> {
  const change: Partial<Described> = {};
  if (wish.description !== undefined && wish.description !== now.description) change.description = wish.description;
  if (wish.metadata !== undefined && !sameMembers(wish.metadata, now.metadata)) change.metadata = wish.metadata;
  if (wish.lineage !== undefined && !sameMembers(wish.lineage, now.lineage)) change.lineage = wish.lineage;
  return change;
}

function sameMembers(a: Record<string, string | undefined>, b: Record<string, string | undefined>): boolean {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => a[key] === b[key]);
}

export const mostTags = 64;

/** Tags after a change, sorted; undefined: they stay as they are. A tag both added and removed is removed. */
export function tagsChange(now: readonly string[], change: ChangeTags, name: string): string[] | undefined {
  const after = [...new Set([...now, ...change.add])].filter((tag) => !change.remove.includes(tag)).sort();
  if (after.length > mostTags)
    throw new AppError('invalid', `${name} would have ${after.length} tags; it may have ${mostTags}, remove some`);
  return after.length === now.length && after.every((tag) => now.includes(tag)) ? undefined : after;
}

export const totalBytes = (files: readonly ManifestFile[]): number => files.reduce((sum, file) => sum + file.size, 0);

/** One hash means one content, so it has one size. */
export function checkSizes(files: readonly ManifestFile[]): void {
  const first = new Map<string, ManifestFile>();
  for (const file of files) {
    const other = first.get(file.sha256) ?? file;
    first.set(file.sha256, other);
    if (other.size !== file.size)
      throw new AppError(
        'invalid',
        `manifest gives ${other.path} and ${file.path} one SHA-256 but the sizes ${other.size} and ${file.size}`,
      );
  }
}

/** `key=value` texts of a search; throws on one without "=". */
export function metadataFilter(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=');
      if (at < 1) throw new AppError('invalid', `metadata filter ${JSON.stringify(text)}: wants key=value`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

export const listOf = <T>(value: T | T[] | undefined): T[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];
