import type { Comparison } from '@perch/contracts';
import { isFloating, type Values, valuesOf } from './tensor-values.ts';

/** One output to compare, in binary form. */
export interface ComparedOutput {
  name: string;
  datatype: string;
  shape: readonly number[];
  bytes: Uint8Array;
}

/** Two outputs of one pair as numbers; `row`: values of the innermost dimension. */
interface Numbers {
  stable: Values;
  candidate: Values;
  row: number;
}

export type By = Exclude<Comparison['by'], 'auto'>;

/** From so many values a row counts as a vector rather than a handful of figures. */
const leastVector = 16;
/** Rows looked at to tell shares from other numbers. */
const rowsLookedAt = 4;
const sharesSlack = 1e-2;
const scoreName = /logit|score|prob|class|label/i;

const sameShape = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((dim, at) => dim === b[at]);

/** Same type, same shape, same bytes. */
export const equalExactly = (stable: ComparedOutput, candidate: ComparedOutput): boolean =>
  stable.datatype === candidate.datatype &&
  sameShape(stable.shape, candidate.shape) &&
  Buffer.compare(stable.bytes, candidate.bytes) === 0;

/** |candidate − stable| ≤ absolute + relative · |stable| for every value; NaN agrees with nothing, an infinity with itself. */
export function equalWithin(
  { stable, candidate }: Numbers,
  { absolute, relative }: Pick<Comparison, 'absolute' | 'relative'>,
): boolean {
  for (let i = 0; i < stable.length; i += 1) {
    const wanted = stable[i]!;
    const got = candidate[i]!;
    const near = Math.abs(got - wanted) <= absolute + relative * Math.abs(wanted);
    if (wanted !== got && !(near && Number.isFinite(wanted))) return false;
  }
  return true;
}

/** Cosine of two vectors of `row` values that begin at `from`; 1 for two of zeros, 0 for one. */
export function cosineAt({ stable, candidate, row }: Numbers, from: number): number {
  let dot = 0;
  let a = 0;
  let b = 0;
  for (let i = from; i < from + row; i += 1) {
    dot += stable[i]! * candidate[i]!;
    a += stable[i]! * stable[i]!;
    b += candidate[i]! * candidate[i]!;
  }
  if (a === 0 || b === 0) return a === b ? 1 : 0;
  const cosine = dot / (Math.sqrt(a) * Math.sqrt(b));
  return Math.max(-1, Math.min(1, cosine)); // NaN stays; squares of tiny values are too coarse to end within
}

/** Place of the greatest of `row` values, the first among equals; −1 when one of them is NaN. */
export function greatestAt(values: Values, from: number, row: number): number {
  let place = 0;
  for (let i = 0; i < row; i += 1) {
    const value = values[from + i]!;
    if (Number.isNaN(value)) return -1;
    if (value > values[from + place]!) place = i;
  }
  return place;
}

function everyRow({ stable, row }: Numbers, agrees: (from: number) => boolean): boolean {
  for (let from = 0; from + row <= stable.length; from += row) if (!agrees(from)) return false;
  return true;
}

function sameGreatest({ stable, candidate, row }: Numbers, from: number): boolean {
  const place = greatestAt(stable, from, row);
  return place >= 0 && place === greatestAt(candidate, from, row);
}

/** Rows of numbers from 0 to 1 that add to 1. */
function areShares(values: Values, row: number): boolean {
  const end = Math.min(values.length, row * rowsLookedAt);
  for (let from = 0; from + row <= end; from += row) {
    let sum = 0;
    for (let i = from; i < from + row; i += 1) {
      if (!(values[i]! >= 0 && values[i]! <= 1)) return false;
      sum += values[i]!;
    }
    if (Math.abs(sum - 1) > sharesSlack) return false;
  }
  return values.length > 0;
}

/**
 * How `auto` compares an output, by stable's: text and whole numbers exactly; class scores (rows that add to 1, or a name
 * that says so) by their greatest; rows of 16 values and more as vectors; else number by number.
 */
export function comparisonFor({ name, datatype, shape, bytes }: ComparedOutput): By {
  if (!isFloating(datatype)) return 'exact';
  const row = shape.at(-1) ?? 1;
  if (row < 2) return 'numeric';
  if (scoreName.test(name) || areShares(valuesOf(datatype, bytes)!, row)) return 'argmax';
  return row >= leastVector ? 'cosine' : 'numeric';
}

function outputAgrees(stable: ComparedOutput, candidate: ComparedOutput, comparison: Comparison): boolean {
  const by = comparison.by === 'auto' ? comparisonFor(stable) : comparison.by;
  if (by === 'exact') return equalExactly(stable, candidate);
  if (!sameShape(stable.shape, candidate.shape)) return false;
  const a = valuesOf(stable.datatype, stable.bytes);
  const b = valuesOf(candidate.datatype, candidate.bytes);
  if (!a || !b) return equalExactly(stable, candidate); // text has no distance
  if (a.length !== b.length) return false;
  const numbers = { stable: a, candidate: b, row: Math.max(1, stable.shape.at(-1) ?? 1) };
  switch (by) {
    case 'numeric':
      return equalWithin(numbers, comparison);
    case 'cosine':
      return everyRow(numbers, (from) => cosineAt(numbers, from) >= comparison.least);
    case 'argmax':
      return everyRow(numbers, (from) => sameGreatest(numbers, from));
  }
}

/** Whether the answers of a pair agree: the same outputs by name, each by the policy's comparison. */
export function outputsAgree(
  stable: readonly ComparedOutput[],
  candidate: readonly ComparedOutput[],
  comparison: Comparison,
): boolean {
  if (stable.length !== candidate.length) return false;
  const byName = new Map(candidate.map((output) => [output.name, output]));
  return stable.every((output) => {
    const other = byName.get(output.name);
    return other !== undefined && outputAgrees(output, other, comparison);
  });
}
