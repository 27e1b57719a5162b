import { logGamma } from './log-math.ts';

/** Uniform in [0, 1). */
export type Random = () => number;

/**
 * Numbers that are the same for the same seed and stream (sfc32; Chris Doty-Humphrey, public domain): 128 bits of state, so
 * that many millions of draws for events of one in a thousand do not run in a circle.
 */
export function seededRandom(seed: number, stream = 0): Random {
  let a = seed | 0;
  let b = stream | 0;
  let c = 0x9e3779b9 | 0;
  let counter = 1;
  const next = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return (sum >>> 0) / 4_294_967_296;
  };
  for (let turn = 0; turn < 12; turn += 1) next();
  return next;
}

/** How many of `n` tries succeed, each with the chance `p`. */
export function drawBinomial(random: Random, n: number, p: number): number {
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p > 0.5) return n - drawBinomial(random, n, 1 - p);
  return n * p < 10 ? binomialByInversion(random, n, p) : binomialByRejection(random, n, p);
}

/** Walks up the distribution until the draw is used up: a step for each success. */
function binomialByInversion(random: Random, n: number, p: number): number {
  const odds = p / (1 - p);
  let left = random();
  let chance = (1 - p) ** n;
  let x = 0;
  while (left > chance && x < n) {
    left -= chance;
    x += 1;
    chance *= (odds * (n - x + 1)) / x;
  }
  return x;
}

/** BTRS: transformed rejection with squeeze (Hörmann 1993), exact for n·p ≥ 10. */
function binomialByRejection(random: Random, n: number, p: number): number {
  const deviation = Math.sqrt(n * p * (1 - p));
  const b = 1.15 + 2.53 * deviation;
  const a = -0.0873 + 0.0248 * b + 0.01 * p;
  const centre = n * p + 0.5;
  const alpha = (2.83 + 5.1 / b) * deviation;
  const mode = Math.floor((n + 1) * p);
  const logOdds = Math.log(p / (1 - p));
  const logFactorials = (k: number) => logGamma(k + 1) + logGamma(n - k + 1);
  for (;;) {
    const u = random() - 0.5;
    const v = random();
    const us = 0.5 - Math.abs(u);
    const k = Math.floor(((2 * a) / us + b) * u + centre);
    if (us >= 0.07 && v <= 0.92 - 4.2 / b) return k;
    if (k < 0 || k > n) continue;
    const bound = logFactorials(mode) - logFactorials(k) + (k - mode) * logOdds;
    if (Math.log((v * alpha) / (a / (us * us) + b)) <= bound) return k;
  }
}

/** ln of a Gamma(shape, 1) variate (Marsaglia and Tsang 2000); shapes near 0 come out as very small numbers, not as 0. */
function drawLogGamma(random: Random, shape: number): number {
  if (shape < 1) return drawLogGamma(random, shape + 1) + Math.log(1 - random()) / shape;
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const z = drawNormal(random);
    const v = (1 + c * z) ** 3;
    if (v > 0 && Math.log(1 - random()) < 0.5 * z * z + d - d * v + d * Math.log(v)) return Math.log(d * v);
  }
}

const drawNormal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** A Beta(a, b) variate, also for shapes so small that nearly all of it lies at 0 and 1. */
export function drawBeta(random: Random, a: number, b: number): number {
  return 1 / (1 + Math.exp(drawLogGamma(random, b) - drawLogGamma(random, a)));
}
