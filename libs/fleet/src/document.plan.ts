import { digestOf } from '@perch/contracts';

/** One member of a document as it should stand, or as it was last published. `value` null: not in the document. */
export interface Entry {
  section: string;
  key: string;
  value: unknown;
  digest: string | null;
  /** Things that left this entry without a decision in the database; while there are any, the document is unconfirmed. */
  unmeant: string[];
}

export const entryOf = (section: string, key: string, value: unknown): Entry => ({
  section,
  key,
  value,
  digest: value === null ? null : digestOf(value),
  unmeant: [],
});

const nameOf = ({ section, key }: { section: string; key: string }) => `${section}\n${key}`;

/**
 * Changes that turn `published` into `wanted` (whole sections). `meant` tells whether a vanished member was removed by
 * a decision; a removal that nobody decided is still carried out, but marks the document as unconfirmed.
 */
export function planEntries(
  published: readonly Entry[],
  wanted: readonly Entry[],
  meant: (entry: Entry) => boolean,
): Entry[] {
  const before = new Map(published.map((entry) => [nameOf(entry), entry]));
  const after = new Set(wanted.map(nameOf));
  const set = wanted.filter((entry) => before.get(nameOf(entry))?.digest !== entry.digest);
  const removed = published
    .filter((entry) => entry.digest !== null && !after.has(nameOf(entry)))
    .map((entry) => ({ ...entry, value: null, digest: null, unmeant: meant(entry) ? [] : [entry.key] }));
  return [...set, ...removed];
}

export interface Head {
  lineage: string;
  revision: number;
  confirmed: boolean;
}

export interface History {
  head: Head;
  /** Lineages that this database has had before. */
  pastLineages: readonly string[];
  /** Revisions of this document that are still remembered, oldest first. */
  revisions: readonly number[];
}

export interface Follower {
  after: number | null;
  lineage: string | null;
}

/** `went_back`: the follower holds something that this database never gave, so the database is older than it. */
export type AnswerKind = 'nothing' | 'patch' | 'whole' | 'went_back';

/** How many revisions back a patch reaches; older followers get the whole document. */
export const patchReach = 20;
/** How many revision numbers are remembered, to tell an old follower from one of another history. */
export const rememberedRevisions = 500;

/**
 * What a follower that asks for news is to be told. Revisions of one lineage are never given twice, also not after a
 * restore (they grow with the clock), so a revision that is not in our memory, and not older than it, proves a restore.
 */
export function decideAnswer(follower: Follower, { head, pastLineages, revisions }: History): AnswerKind {
  if (follower.lineage !== null && follower.lineage !== head.lineage)
    return pastLineages.includes(follower.lineage) ? 'whole' : 'went_back';
  if (head.revision === 0) return follower.after ? 'went_back' : 'nothing';
  if (follower.after === null || follower.lineage === null) return 'whole';
  if (follower.after === head.revision) return 'nothing';
  if (follower.after > head.revision) return 'went_back';
  const oldest = revisions[0];
  if (oldest === undefined || follower.after < oldest) return 'whole';
  if (!revisions.includes(follower.after)) return 'went_back';
  return revisions.indexOf(follower.after) >= revisions.length - 1 - patchReach ? 'patch' : 'whole';
}
