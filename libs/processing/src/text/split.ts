/** A stretch of text, and whether the pattern matched it. */
type Stretch = readonly [text: string, matched: boolean];

export type SplitBehavior = 'removed' | 'isolated' | 'mergedwithprevious' | 'mergedwithnext' | 'contiguous';

const behaviors: readonly string[] = ['removed', 'isolated', 'mergedwithprevious', 'mergedwithnext', 'contiguous'];

export function readBehavior(given: string | undefined, usual: SplitBehavior): SplitBehavior {
  const behavior = (given ?? usual).toLowerCase().replaceAll('_', '');
  if (!behaviors.includes(behavior)) throw new Error(`its splitter's behavior ${given} is not supported`);
  return behavior as SplitBehavior;
}

function stretchesOf(text: string, pattern: RegExp, seen: string): Stretch[] {
  const stretches: Stretch[] = [];
  let from = 0;
  for (const { 0: match, index } of seen.matchAll(pattern)) {
    const end = index + match.length;
    if (index > from) stretches.push([text.slice(from, index), false]);
    if (end > index) stretches.push([text.slice(index, end), true]);
    from = end;
  }
  if (from < text.length) stretches.push([text.slice(from), false]);
  return stretches;
}

/** A match goes to its neighbour, unless the one before it (in the order of `stretches`) was a match as well. */
function merge(stretches: readonly Stretch[], join: (before: string, match: string) => string): string[] {
  const pieces: string[] = [];
  let wasMatch = false;
  for (const [text, matched] of stretches) {
    if (matched && !wasMatch && pieces.length > 0) pieces.push(join(pieces.pop()!, text));
    else pieces.push(text);
    wasMatch = matched;
  }
  return pieces;
}

function contiguous(stretches: readonly Stretch[]): string[] {
  const pieces: string[] = [];
  let last: boolean | undefined;
  for (const [text, matched] of stretches) {
    if (matched === last) pieces.push(pieces.pop()! + text);
    else pieces.push(text);
    last = matched;
  }
  return pieces;
}

interface SplitOptions {
  /** Swaps match and rest. */
  invert?: boolean;
  /** What the pattern looks at in place of the text; of the same length. */
  seen?: string;
}

/** Cuts a text by a pattern as the reference's `NormalizedString::split` does. */
export function splitText(
  text: string,
  pattern: RegExp,
  behavior: SplitBehavior,
  { invert = false, seen = text }: SplitOptions = {},
): string[] {
  const found = stretchesOf(text, pattern, seen);
  const stretches: Stretch[] = invert ? found.map(([piece, matched]) => [piece, !matched]) : found;
  switch (behavior) {
    case 'removed':
      return stretches.filter(([, matched]) => !matched).map(([piece]) => piece);
    case 'isolated':
      return stretches.map(([piece]) => piece);
    case 'contiguous':
      return contiguous(stretches);
    case 'mergedwithprevious':
      return merge(stretches, (before, match) => before + match);
    case 'mergedwithnext':
      return merge(stretches.toReversed(), (after, match) => match + after).reverse();
  }
}
