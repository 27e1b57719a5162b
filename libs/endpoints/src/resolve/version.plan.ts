import type { EndpointSpec, VersionState } from '@perch/contracts';

/** A version as far as the rule looks at it. */
export interface VersionFacts {
  number: number;
  state: VersionState;
  tags: readonly string[];
}

/** How many versions a rule keeps loaded when it does not say: the newest one. */
export const defaultMaxVersions = 1;

/** Its bytes are all there, and nobody put it away. */
export const isComplete = ({ state }: Pick<VersionFacts, 'state'>) => state === 'draft' || state === 'published';

/**
 * Numbers of the versions an endpoint wants, newest (highest) first. A fixed version may be a draft: it was named by
 * hand. Archived versions and those still uploading are never wanted.
 */
export function selectVersions(model: EndpointSpec['model'], versions: readonly VersionFacts[]): number[] {
  const { version: fixed, select, maxVersions = defaultMaxVersions } = model;
  if (fixed !== undefined)
    return versions.some((version) => version.number === fixed && isComplete(version)) ? [fixed] : [];
  const { tags, tagMatch, published, versions: named } = select ?? { tags: [], tagMatch: 'all', published: true };
  const matches = ({ number, state, tags: has }: VersionFacts) =>
    (!named || named.includes(number)) &&
    (published ? state === 'published' : isComplete({ state })) &&
    (tags.length === 0 ||
      (tagMatch === 'any' ? tags.some((tag) => has.includes(tag)) : tags.every((tag) => has.includes(tag))));
  return versions
    .filter(matches)
    .map(({ number }) => number)
    .sort((a, b) => b - a)
    .slice(0, maxVersions);
}
