import {
  AppError,
  type DesiredAnswer,
  type DesiredServer,
  desiredServer,
  documentSchema,
  holdsRemovals,
  type ObservedState,
  parseWith,
  patchSections,
} from '@perch/contracts';

/**
 * The documents an agent goes by. `accepted`: the last one whose removals were meant. `pending`: a newer one whose
 * removals wait for a confirmation; what it adds counts already.
 */
export interface Documents {
  accepted: DesiredServer | null;
  pending: DesiredServer | null;
}

export const noDocuments: Documents = { accepted: null, pending: null };

/** The newest document seen, held or not: what the next patch is based on. */
export const newestDocument = ({ accepted, pending }: Documents): DesiredServer | null => pending ?? accepted;

/** The document that an answer stands for. Throws `conflict` when a patch is based on another one: ask for the whole. */
export function readAnswer(documents: Documents, answer: DesiredAnswer): DesiredServer {
  if (answer.kind === 'whole') return checkSchema(answer.document);
  const newest = newestDocument(documents);
  if (!newest || newest.lineage !== answer.lineage || newest.revision !== answer.base)
    throw new AppError('conflict', `patch on revision ${answer.base}, which is not the one held here`);
  const { lineage, revision, schema, confirmed, patch } = answer;
  const { models } = patchSections({ models: newest.models }, { models: patch['models'] ?? {} });
  return checkSchema(
    parseWith(desiredServer, { lineage, revision, schema, confirmed, models }, 'desired document after the patch'),
  );
}

function checkSchema(document: DesiredServer): DesiredServer {
  if (document.schema > documentSchema + 1)
    throw new AppError(
      'invalid',
      `desired document has schema ${document.schema}, this agent reads up to ${documentSchema}; update the agent`,
    );
  return document;
}

/**
 * What to go by after `next` came. `present`: our models on this server, which count as served when no document was
 * ever accepted (a lost data folder must not empty a server). An older revision of the same lineage changes nothing.
 */
export function acceptDocument(documents: Documents, next: DesiredServer, present: readonly string[]): Documents {
  const newest = newestDocument(documents);
  if (newest && newest.lineage === next.lineage && next.revision < newest.revision) return documents;
  const { accepted } = documents;
  const served = accepted ? Object.keys(accepted.models) : present;
  const removed = served.filter((name) => !(name in next.models));
  const holds = holdsRemovals(accepted ?? undefined, next, { served: served.length, removed: removed.length });
  return holds ? { accepted, pending: next } : { accepted: next, pending: null };
}

/** The models to hold, and whether anything of ours beyond them may go. */
export function desiredOf({ accepted, pending }: Documents): {
  models: DesiredServer['models'];
  removalsAllowed: boolean;
} {
  if (!pending) return { models: accepted?.models ?? {}, removalsAllowed: accepted !== null };
  return { models: { ...accepted?.models, ...pending.models }, removalsAllowed: false };
}

/** Whether a server that leaves may go: nothing is desired of it any more, and what it served is unloaded. */
export function isDrained({ accepted, pending }: Documents, states: readonly ObservedState[]): boolean {
  if (!accepted || pending || Object.keys(accepted.models).length > 0) return false;
  return !states.some((state) => state === 'ready' || state === 'warming' || state === 'unloading');
}

/** Names that the pending document leaves out and that stay until it is confirmed. */
export function heldRemovals({ accepted, pending }: Documents, orphans: readonly string[]): string[] {
  if (!pending) return [];
  const names = new Set([...Object.keys(accepted?.models ?? {}), ...orphans]);
  return [...names].filter((name) => !(name in pending.models)).sort();
}
