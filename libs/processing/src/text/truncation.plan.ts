export type Truncation = 'longest-first' | 'first' | 'second';

/**
 * How many tokens of each text of a pair stay, so that there are `room` at most; undefined: the text that may be cut is
 * too short for it. As `truncate_encodings` of the reference, to the token.
 */
export function planTruncation(
  [first, second]: readonly [number, number],
  room: number,
  truncation: Truncation,
): [number, number] | undefined {
  const surplus = first + second - room;
  if (surplus <= 0) return [first, second];
  if (truncation === 'first') return first > surplus ? [first - surplus, second] : undefined;
  if (truncation === 'second') return second > surplus ? [first, second - surplus] : undefined;
  let shorter = Math.min(first, second);
  let longer = shorter > room ? shorter : Math.max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = Math.floor(room / 2);
    longer = shorter + (room % 2);
  }
  return first > second ? [longer, shorter] : [shorter, longer];
}
