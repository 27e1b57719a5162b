import type { Glyphs } from './glyphs.ts';

const within = (value: number, least: number, most: number) => Math.max(least, Math.min(most, value));

/** Column of `share` (0 … 1) in a bar of so many columns. */
export const columnOf = (share: number, width: number): number => within(Math.round(share * (width - 1)), 0, width - 1);

/** A bar filled from the left. Anything above nothing shows one column, anything below all leaves one. */
export function fillBar(share: number, width: number, { full, empty }: Glyphs): string {
  const exact = within(share, 0, 1) * width;
  const columns = exact > 0 && exact < 1 ? 1 : exact < width && exact > width - 1 ? width - 1 : Math.round(exact);
  return full.repeat(columns) + empty.repeat(width - columns);
}

export interface Interval {
  lower: number;
  upper: number;
  /** Undefined: nothing was counted. */
  point?: number | undefined;
  /** Where the right end of the bar is. */
  most: number;
  limit: number;
}

/** `   ├──●───┤  ┃   `: bounds, the measured rate between them, and the limit; an upper bound beyond the bar ends in `›`. */
export function intervalBar({ lower, upper, point, most, limit }: Interval, width: number, glyphs: Glyphs): string {
  const cells = new Array<string>(width).fill(' ');
  const at = (value: number) => columnOf(value / most, width);
  for (let column = at(lower); column <= at(upper); column += 1) cells[column] = glyphs.line;
  cells[at(limit)] = glyphs.limit;
  if (at(lower) !== at(limit)) cells[at(lower)] = glyphs.from;
  if (at(upper) !== at(limit)) cells[at(upper)] = upper > most ? glyphs.next : glyphs.to;
  if (point !== undefined && at(point) !== at(limit)) cells[at(point)] = glyphs.point;
  return cells.join('');
}

/** A line of figures below a bar, each centred below its column where there is room; the first ones go first. */
export function scaleLine(marks: readonly (readonly [column: number, text: string])[], width: number): string {
  const cells = new Array<string>(width).fill(' ');
  for (const [column, text] of marks) {
    const start = within(column - Math.floor(text.length / 2), 0, Math.max(0, width - text.length));
    const around = cells.slice(Math.max(0, start - 1), start + text.length + 1);
    if (text.length > width || around.some((cell) => cell !== ' ')) continue;
    for (const [at, letter] of [...text].entries()) cells[start + at] = letter;
  }
  return cells.join('');
}

export interface LogScale {
  least: number;
  most: number;
}

/** Share of a bar on a log scale; what lies outside is at its end. */
export const logShare = (value: number, { least, most }: LogScale): number =>
  value <= least ? 0 : within(Math.log(value / least) / Math.log(most / least), 0, 1);

/** `━━━━●        ┃    `: a value on a log scale against a threshold. */
export function logBar(value: number, threshold: number, scale: LogScale, width: number, glyphs: Glyphs): string {
  const cells = new Array<string>(width).fill(glyphs.empty);
  const end = columnOf(logShare(value, scale), width);
  for (let column = 0; column < end; column += 1) cells[column] = glyphs.full;
  cells[columnOf(logShare(threshold, scale), width)] = glyphs.limit;
  if (value > 0) cells[end] = glyphs.point;
  return cells.join('');
}
