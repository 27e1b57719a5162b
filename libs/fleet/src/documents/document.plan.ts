import { digestOf, documentSchema } from '@perch/contracts';

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

/** What is known of a document, seen from a follower's revision. */
export interface History {
  head: Head;
  /** Lineages that this database has had before. */
  pastLineages: readonly string[];
  /** The oldest revision that is still remembered; null: none is. */
  oldest: number | null;
  /** The follower's revision is one of those remembered. */
  holds: boolean;
  /** Remembered revisions after it, counted up to one more than a patch reaches. */
  behind: number;
}

export interface Follower {
  after: number | null;
  lineage: string | null;
  /** Newest schema it reads, and the schema of what it holds; absent: those of this program. */
  schema?: number;
  holds?: number;
}

/** The schema that a follower is served: the lower of what it reads and what the control plane gives out. */
export const servedSchema = ({ schema = documentSchema }: Follower, given: number): number => Math.min(schema, given);

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
export function decideAnswer(follower: Follower, history: History, given: number = documentSchema): AnswerKind {
  const kind = decideByRevision(follower, history);
  const served = servedSchema(follower, given);
  // What it holds was written for another reader: even an old revision may say more, or less, in this schema.
  const otherSchema = follower.after !== null && (follower.holds ?? served) !== served;
  return otherSchema && (kind === 'patch' || (kind === 'nothing' && history.head.revision > 0)) ? 'whole' : kind;
}

function decideByRevision(follower: Follower, { head, pastLineages, oldest, holds, behind }: History): AnswerKind {
  if (follower.lineage !== null && follower.lineage !== head.lineage)
    return pastLineages.includes(follower.lineage) ? 'whole' : 'went_back';
  if (head.revision === 0) return follower.after ? 'went_back' : 'nothing';
  if (follower.after === null || follower.lineage === null) return 'whole';
  if (follower.after === head.revision) return 'nothing';
  if (follower.after > head.revision) return 'went_back';
  if (oldest === null || follower.after < oldest) return 'whole';
  if (!holds) return 'went_back';
  return behind <= patchReach ? 'patch' : 'whole';
}
