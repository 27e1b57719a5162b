import { AppError, type VersionState } from '@perch/contracts';

export type VersionVerb = 'publish' | 'unpublish' | 'archive' | 'restore';

/** From which states a verb leads where; the same machine stands in SQL (trigger `versions_guard`). */
const moves: Record<VersionVerb, { from: readonly VersionState[]; to: VersionState }> = {
  publish: { from: ['draft'], to: 'published' },
  unpublish: { from: ['published'], to: 'draft' },
  archive: { from: ['draft', 'published'], to: 'archived' },
  restore: { from: ['archived'], to: 'draft' },
};

const advice = (state: VersionState, verb: VersionVerb): string => {
  if (state === 'uploading') return 'complete its upload first';
  return state === 'archived' ? 'restore it first' : `only an ${moves[verb].from.join(' or ')} version can be`;
};

/**
 * State that `verb` leads to. Equal to `state`: the version is there already and nothing is to be done, so that a
 * request sent twice is harmless. Throws `invalid` when the verb does not fit; `name` names the version in words.
 */
export function decideState(state: VersionState, verb: VersionVerb, name: string): VersionState {
  const { from, to } = moves[verb];
  if (state === to || from.includes(state)) return to;
  throw new AppError('invalid', `cannot ${verb} ${name}: it is ${state}; ${advice(state, verb)}`);
}
