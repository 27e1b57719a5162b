import { stirlingError } from './log-math.ts';

export interface Bounds {
  lower: number;
  upper: number;
}

/**
 * ln of the beta-binomial mixture over the likelihood at p̂ = x/n: `ln Beta(1+x, 1+n−x) − x ln p̂ − (n−x) ln(1−p̂)`, for
 * 0 < x < n. By Stirling's formula the large terms cancel on paper, so that 10⁹ events cost no digit.
 */
function mixtureAtMode(x: number, n: number): number {
  const y = n - x;
  return (
    0.5 * Math.log((2 * Math.PI * x * y) / n) - Math.log1p(n) + stirlingError(x) + stirlingError(y) - stirlingError(n)
  );
}

/**
 * The smaller root of `x ln(p̂/p) + y ln((1−p̂)/(1−p)) = depth`, by Newton's method in s = ln(p/p̂). The left side is convex
 * in s, so that after the first step the iteration comes from below and never passes the root.
 */
function lowerRoot(x: number, y: number, depth: number): number {
  const p = x / (x + y);
  let s = -Math.sqrt((2 * depth * y) / (x * (x + y)));
  for (let turn = 0; turn < 60; turn += 1) {
    const grown = p * Math.expm1(s); // p·e^s − p
    const excess = -x * s - y * Math.log1p(-grown / (1 - p)) - depth;
    const slope = (x + y) * (grown / (1 - p - grown));
    const step = excess / slope;
    s -= step;
    if (Math.abs(step) <= 1e-8 * Math.abs(s)) break; // it converges by squares: what is left is below the last digit
  }
  return p * Math.exp(s);
}

/**
 * Bounds for a rate after `x` events in `n` trials that hold at all times at once, but for a chance of `a`:
 * `{p : Beta(1+x, 1+n−x) / Beta(1, 1) / (p^x (1−p)^(n−x)) < 1/a}` (beta-binomial confidence sequence; Robbins 1970,
 * Howard et al. 2021). One may look as often as one likes. Nothing seen: [0, 1].
 */
export function promotionBounds(x: number, n: number, a: number): Bounds {
  const events = Math.min(Math.max(x, 0), n);
  if (!(n > 0)) return { lower: 0, upper: 1 };
  const allOneWay = -Math.expm1((Math.log(a) - Math.log1p(n)) / n);
  if (events === 0) return { lower: 0, upper: allOneWay };
  if (events === n) return { lower: 1 - allOneWay, upper: 1 };
  const rest = n - events;
  const depth = -Math.log(a) - mixtureAtMode(events, n);
  return { lower: lowerRoot(events, rest, depth), upper: 1 - lowerRoot(rest, events, depth) };
}
