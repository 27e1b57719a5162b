const halfLogTwoPi = 0.5 * Math.log(2 * Math.PI);

/**
 * What Stirling's formula lacks of ln x!: `ln x! − (½ ln 2π + (x + ½) ln x − x)`, for x > 0. Taken from the series where
 * that is exact to the last digit (Abramowitz and Stegun 6.1.41); below, each step down costs one logarithm.
 */
export function stirlingError(x: number): number {
  if (x < 15) return smallErrors[x] ?? errorByStep(x);
  const square = x * x;
  return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / x;
}

function errorByStep(x: number): number {
  return stirlingError(x + 1) + (x + 0.5) * Math.log1p(1 / x) - 1;
}
/** Of the counts that come most often. */
const smallErrors: (number | undefined)[] = [];
for (let x = 14; x >= 1; x -= 1) smallErrors[x] = errorByStep(x);

/** ln Γ(z) for z > 0. */
export function logGamma(z: number): number {
  if (z < 1) return logGamma(z + 1) - Math.log(z);
  const x = z - 1;
  return x === 0 ? 0 : halfLogTwoPi + (x + 0.5) * Math.log(x) - x + stirlingError(x);
}

/** ln Σ exp(terms); −∞ of nothing. No term over- or underflows, however large. */
export function logSumExp(terms: ArrayLike<number> & Iterable<number>): number {
  let largest = Number.NEGATIVE_INFINITY;
  for (const term of terms) if (term > largest) largest = term;
  if (largest === Number.NEGATIVE_INFINITY) return largest;
  let sum = 0;
  for (const term of terms) sum += Math.exp(term - largest);
  return largest + Math.log(sum);
}

/** exp(log), kept finite, so that a figure survives JSON. */
export const finiteExp = (log: number): number => Math.exp(Math.min(log, 700));
