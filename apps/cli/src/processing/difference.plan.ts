import type { FixtureTolerance } from '@perch/contracts';

export interface Difference {
  /** `scores[0].label`; empty: the reply itself. */
  path: string;
  words: string;
}

const mostDifferences = 20;

/** Where a reply is not what was wanted, in the order of the wanted one; [] when it is. */
export function differences(wanted: unknown, got: unknown, tolerance: FixtureTolerance): Difference[] {
  const found: Difference[] = [];
  compare(wanted, got, '', (path, words) => {
    if (found.length < mostDifferences) found.push({ path, words });
  });
  return found;

  function compare(a: unknown, b: unknown, path: string, differ: (path: string, words: string) => void): void {
    if (typeof a === 'number' && typeof b === 'number') {
      const limit = tolerance.absolute + tolerance.relative * Math.abs(a);
      if (!(Math.abs(a - b) <= limit) && !Object.is(a, b))
        differ(path, `wanted ${a}, got ${b} (differs by ${short(Math.abs(a - b))}, at most ${short(limit)})`);
    } else if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) differ(path, `wanted ${a.length} elements, got ${b.length}`);
      for (let at = 0; at < Math.min(a.length, b.length); at += 1) compare(a[at], b[at], `${path}[${at}]`, differ);
    } else if (isRecord(a) && isRecord(b)) {
      for (const key of Object.keys(a)) {
        const inner = path ? `${path}.${key}` : key;
        if (!Object.hasOwn(b, key)) differ(inner, `wanted ${shown(a[key])}, got nothing`);
        else compare(a[key], b[key], inner, differ);
      }
      for (const key of Object.keys(b).filter((one) => !Object.hasOwn(a, one)))
        differ(path ? `${path}.${key}` : key, `not wanted, got ${shown(b[key])}`);
    } else if (a !== b) differ(path, `wanted ${shown(a)}, got ${shown(b)}`);
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const short = (value: number): string => String(Number(value.toPrecision(3)));

export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 120 ? `${text.slice(0, 117)}…` : text;
}

export const differenceText = ({ path, words }: Difference): string => `${path || 'the reply'}: ${words}`;
