/** What a tensor may be: the model's shape, -1 = any; the first dimension is the batch where `batches`. */
export interface ShapeWish {
  dims: readonly number[];
  batches: boolean;
}

export type Fit = { shape: number[] } | { fault: string };

export const shapeText = (dims: readonly number[]): string => `[${dims.join(', ')}]`;

const matches = (dims: readonly number[], shape: readonly number[]): boolean =>
  dims.length === shape.length && dims.every((dim, i) => dim === -1 || dim === shape[i]);

const product = (dims: readonly number[]): number => dims.reduce((total, dim) => total * dim, 1);

/** The only shape of `count` values that the model's dims allow, when one dimension at most is open. */
function fold(dims: readonly number[], count: number): number[] | undefined {
  const open = dims.filter((dim) => dim === -1).length;
  const fixed = product(dims.filter((dim) => dim !== -1));
  if (open === 0) return fixed === count ? [...dims] : undefined;
  if (open > 1 || count === 0 || fixed === 0 || count % fixed !== 0) return undefined;
  return dims.map((dim) => (dim === -1 ? count / fixed : dim));
}

/**
 * Shape for values that came nested as `given` (or with that shape written beside them):
 * as it stands; else with a batch of one in front; else, for a flat list or a bare value, folded where only one shape is
 * possible. Anything else is a fault, told as a sentence.
 */
export function fitShape(given: readonly number[], wish: ShapeWish): Fit {
  const { dims, batches } = wish;
  if (matches(dims, given)) return { shape: [...given] };
  const example = batches ? dims.slice(1) : dims;
  if (batches && matches(example, given)) return { shape: [1, ...given] };
  if (given.length <= 1 && dims.length > given.length) {
    const count = product(given);
    const one = fold(example, count);
    const folded = batches && one ? [1, ...one] : fold(dims, count);
    if (folded) return { shape: folded };
  }
  return { fault: `shape ${shapeText(given)}, wanted ${shapeText(dims)}` };
}
