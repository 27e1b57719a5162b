import { type GoldenRequest, type GoldenTolerance, goldenElements, isHalfType, roundToHalf } from '@perch/contracts';

/** A tensor as a model server answers it in JSON; FP16 and BF16 as numbers. */
export interface AnsweredTensor {
  name: string;
  datatype: string;
  shape: readonly number[];
  data: readonly unknown[];
}

type Wanted = GoldenRequest['outputs'][number];

const shown = (value: unknown) => (typeof value === 'number' ? String(value) : typeof value === 'string' && value.length > 80 ? `${JSON.stringify(value.slice(0, 80))}…` : JSON.stringify(value) ?? 'nothing'); // biome-ignore format: one row reads better

/** Whole numbers are equal or not; NaN never fits. */
function fits(wanted: unknown, got: unknown, isWhole: boolean, { absolute, relative }: GoldenTolerance): boolean {
  if (typeof wanted === 'boolean') return typeof got !== 'string' && Number(got) === Number(wanted);
  if (typeof wanted === 'string' || isWhole) return wanted === got;
  return (
    typeof wanted === 'number' &&
    typeof got === 'number' &&
    Math.abs(got - wanted) <= absolute + relative * Math.abs(wanted)
  );
}

/** No model can answer what its type cannot hold: 0.3 as BF16 is 0.30078125. */
const nearestIn =
  (datatype: string) =>
  (value: unknown): unknown =>
    isHalfType(datatype) && typeof value === 'number' ? roundToHalf(datatype, value) : value;

/** `[1,2]` of the shape, for a flat place. */
function placeText(at: number, shape: readonly number[]): string {
  const places: number[] = [];
  let rest = at;
  for (const size of [...shape].reverse()) {
    places.unshift(rest % Math.max(1, size));
    rest = Math.floor(rest / Math.max(1, size));
  }
  return `[${places}]`;
}

function outputFault(
  wanted: Wanted,
  outputs: readonly AnsweredTensor[],
  tolerance: GoldenTolerance,
): string | undefined {
  const got = outputs.find(({ name }) => name === wanted.name);
  if (!got) return `output ${wanted.name} is missing (got ${outputs.map(({ name }) => name).join(', ') || 'none'})`;
  if (wanted.datatype && wanted.datatype !== got.datatype)
    return `output ${wanted.name} differs: wanted datatype ${wanted.datatype}, got ${got.datatype}`;
  if (wanted.shape && wanted.shape.join() !== got.shape.join())
    return `output ${wanted.name} differs: wanted shape [${wanted.shape}], got [${got.shape}]`;
  const [a, b] = [goldenElements(wanted.data), goldenElements(got.data)];
  if (a.length !== b.length) return `output ${wanted.name} differs: wanted ${a.length} values, got ${b.length}`;
  const isWhole = !/^B?F/.test(got.datatype);
  const nearest = nearestIn(got.datatype);
  const differs = (value: unknown, place: number) =>
    !fits(nearest(value), b[place], isWhole, wanted.tolerance ?? tolerance);
  const at = a.findIndex(differs);
  if (at < 0) return undefined;
  const many = a.filter(differs).length;
  const more = many > 1 ? ` (and ${many - 1} more of ${a.length})` : '';
  return `output ${wanted.name} differs at ${placeText(at, got.shape)}: wanted ${shown(a[at])}, got ${shown(b[at])}${more}`;
}

/** Why an answer is not the golden one, the first difference; undefined: it is. */
export function goldenFault(golden: GoldenRequest, outputs: readonly AnsweredTensor[]): string | undefined {
  for (const wanted of golden.outputs) {
    const fault = outputFault(wanted, outputs, golden.tolerance);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
