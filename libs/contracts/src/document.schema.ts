import { z } from 'zod';

/**
 * Version of the internal documents' shape, and the oldest one that is still served. A follower says which one it reads
 * (`schema`, absent = 1) and which one it holds (`holds`); it is given the lower of its own and the control plane's.
 * Readers ignore unknown fields. 2: `models` and `tritonVersion` of a route's targets, `needs` of desired models.
 */
export const documentSchema = 2;
export const oldestDocumentSchema = 1;

/**
 * Head of every document the control plane hands out. `lineage` is new at initialisation and after a restore;
 * within a lineage a higher `revision` is newer. `confirmed`: every removal in it is meant (see `holdsRemovals`).
 */
export const documentHead = {
  lineage: z.uuid(),
  revision: z.number().int().min(0),
  schema: z.number().int(),
  confirmed: z.boolean(),
};

export interface DocumentHead {
  lineage: string;
  revision: number;
  schema: number;
  confirmed: boolean;
}

type Sections = Record<string, Record<string, unknown>>;

/** Per section: members to set, and `null` for members to remove. Only sections named by the document's kind. */
export type DocumentPatch = Record<string, Record<string, unknown>>;

/** Patch that turns the sections of `before` into those of `after`; members are compared by canonical text. */
export function diffSections(
  before: Sections,
  after: Sections,
  same: (a: unknown, b: unknown) => boolean,
): DocumentPatch {
  const patch: DocumentPatch = {};
  for (const [section, members] of Object.entries(after)) {
    const old = before[section] ?? {};
    const changes: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(members))
      if (!(key in old) || !same(old[key], value)) changes[key] = value;
    for (const key of Object.keys(old)) if (!(key in members)) changes[key] = null;
    if (Object.keys(changes).length > 0) patch[section] = changes;
  }
  return patch;
}

/** The sections of `before` with the patch applied; `before` is left as it was. Applying a patch twice changes nothing. */
export function patchSections<T extends Sections>(before: T, patch: DocumentPatch): T {
  const after: Sections = { ...before };
  for (const [section, changes] of Object.entries(patch)) {
    const members = { ...(after[section] ?? {}) };
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) delete members[key];
      else members[key] = value;
    }
    after[section] = members;
  }
  return after as T;
}

/**
 * "I was told nothing" never means "I was told: nothing". An unconfirmed document from another lineage removes
 * nothing; an unconfirmed one of the same lineage removes at most half of what is served.
 */
export function holdsRemovals(
  last: DocumentHead | undefined,
  next: DocumentHead,
  counts: { served: number; removed: number },
): boolean {
  if (next.confirmed || counts.removed === 0) return false;
  if (last && last.lineage !== next.lineage) return true;
  return counts.removed * 2 > counts.served;
}

/** Answer to a long poll. Nothing new within the poll's time: status 304 without a body. */
export const documentAnswer = <T extends z.ZodType>(document: T) =>
  z.union([
    z.object({ kind: z.literal('whole'), document }),
    z.object({
      kind: z.literal('patch'),
      base: z.number().int(),
      ...documentHead,
      patch: z.record(z.string(), z.record(z.string(), z.unknown())),
    }),
  ]);
