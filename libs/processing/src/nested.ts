import { AppError } from '@perch/contracts/plain';
import { ScannedNumbers } from './number-scan.ts';

/** Values of one tensor in row-major order, with the shape that their nesting shows; `[]` for a bare value. */
export interface FlatValues {
  shape: number[];
  values: unknown[] | Float64Array;
}

const maxRank = 16;

/** Flattens nested lists. Throws `invalid` naming `thing` when rows differ in length or depth. */
export function flatten(data: unknown, thing: string): FlatValues {
  if (data instanceof ScannedNumbers) return data;
  const shape: number[] = [];
  for (let level = data; Array.isArray(level) && shape.length <= maxRank; level = level[0]) shape.push(level.length);
  if (shape.length > maxRank) throw new AppError('invalid', `${thing}: lists nested deeper than ${maxRank}`);
  if (shape.length === 0) return { shape, values: [data] };
  if (shape.length === 1) {
    const list = data as unknown[];
    for (let i = 0; i < list.length; i++) if (Array.isArray(list[i])) throw ragged(thing, [i], 'a value', 'a list');
    return { shape, values: list };
  }
  const values: unknown[] = [];
  collect(data as unknown[], 0, { shape, values, thing, path: [] });
  return { shape, values };
}

interface Walk {
  shape: number[];
  values: unknown[];
  thing: string;
  path: number[];
}

function collect(list: unknown[], depth: number, walk: Walk): void {
  const { shape, values, thing, path } = walk;
  if (list.length !== shape[depth])
    throw ragged(thing, path, `${shape[depth]} elements as in its first neighbour`, `${list.length}`);
  const innermost = depth === shape.length - 1;
  for (let i = 0; i < list.length; i++) {
    const element = list[i];
    if (Array.isArray(element) === innermost)
      throw ragged(thing, [...path, i], innermost ? 'a value' : 'a list', innermost ? 'a list' : 'a value');
    if (innermost) values.push(element);
    else {
      path.push(i);
      collect(element as unknown[], depth + 1, walk);
      path.pop();
    }
  }
}

const ragged = (thing: string, path: number[], wanted: string, got: string) =>
  new AppError('invalid', `${thing}: ragged lists: at [${path.join('][')}] wanted ${wanted}, got ${got}`);
