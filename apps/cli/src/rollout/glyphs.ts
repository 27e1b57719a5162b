/** Signs that bars and lines are drawn with. */
export interface Glyphs {
  rule: string;
  next: string;
  arrow: string;
  full: string;
  empty: string;
  /** Ends, line and point of an interval. */
  from: string;
  to: string;
  line: string;
  point: string;
  /** A limit through all bars, and what points up to it. */
  limit: string;
  up: string;
  more: string;
}

const unicode: Glyphs = {
  rule: '─', next: '›', arrow: '→', full: '█', empty: '░', from: '├', to: '┤', line: '─', point: '●', limit: '┃', up: '▲', more: '…',
}; // biome-ignore format: one set

const ascii: Glyphs = {
  rule: '-', next: '>', arrow: '->', full: '#', empty: '.', from: '|', to: '|', line: '-', point: 'o', limit: '!', up: '^', more: '...',
}; // biome-ignore format: one set

/** By what the locale says of the terminal; without a locale a terminal of today knows UTF-8. */
export function glyphsFor(environment: Record<string, string | undefined>): Glyphs {
  const locale = environment['LC_ALL'] || environment['LC_CTYPE'] || environment['LANG'];
  return !locale || /utf-?8/i.test(locale) ? unicode : ascii;
}
