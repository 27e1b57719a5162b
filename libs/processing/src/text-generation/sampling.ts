import { AppError } from '@perch/contracts/plain';

export interface Sampling {
  /** 0: always the most likely token. */
  temperature: number;
  /** 0: no limit. */
  topK: number;
  /** 1: no limit. */
  topP: number;
}

const unfit = () => new AppError('upstream', 'the model answered logits that are no numbers');

/** The id with the greatest logit; of equal ones the lowest. Throws `upstream` where there is none. */
export function greatestOf(logits: Float32Array): number {
  let best = 0;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    if (logit > logits[best]!) best = id;
    else if (Number.isNaN(logit)) throw unfit();
  }
  if (!Number.isFinite(logits[best]!)) throw unfit();
  return best;
}

/** Ids of the `count` greatest logits, greatest first; of equal ones the lowest first. A heap with the least of them on top. */
export function mostLikely(logits: Float32Array, count: number): Uint32Array {
  const size = Math.min(count, logits.length);
  const heap = new Uint32Array(size);
  const isLess = (a: number, b: number) => logits[a]! < logits[b]! || (logits[a]! === logits[b]! && a > b);
  const sink = (from: number) => {
    const id = heap[from]!;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && isLess(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isLess(heap[child]!, id)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = id;
  };
  for (let id = 0; id < size; id++) heap[id] = id;
  for (let at = (size >> 1) - 1; at >= 0; at--) sink(at);
  for (let id = size; size > 0 && id < logits.length; id++)
    if (isLess(heap[0]!, id)) {
      heap[0] = id;
      sink(0);
    }
  return heap.sort((a, b) => (isLess(a, b) ? 1 : -1));
}

/**
 * One token, drawn from softmax(logits / temperature): first only the `topK` most likely ones are kept, then of those the
 * fewest that together hold `topP` of what they weigh ("nucleus", Holtzman et al. 2020), at least one. `random`: from 0 up
 * to but not including 1. Throws `upstream` where the logits hold NaN or +∞.
 */
export function drawToken(logits: Float32Array, { temperature, topK, topP }: Sampling, random: () => number): number {
  const best = greatestOf(logits);
  if (temperature === 0 || topK === 1) return best;
  const greatest = logits[best]!;
  const ids = topK > 0 && topK < logits.length ? mostLikely(logits, topK) : undefined;
  const count = ids?.length ?? logits.length;
  const weights = new Float64Array(count);
  let total = 0;
  for (let i = 0; i < count; i++) {
    weights[i] = Math.exp((logits[ids ? ids[i]! : i]! - greatest) / temperature);
    total += weights[i]!;
  }
  const at = topP < 1 ? drawFromNucleus(weights, total, topP, random()) : drawWeighted(weights, total * random());
  return ids ? ids[at]! : at;
}

/** The place where the running sum passes `point`. */
function drawWeighted(weights: Float64Array, point: number): number {
  let sum = 0;
  let last = 0;
  for (let i = 0; i < weights.length; i++) {
    if (weights[i] === 0) continue;
    sum += weights[i]!;
    last = i;
    if (point < sum) break;
  }
  return last;
}

function drawFromNucleus(weights: Float64Array, total: number, topP: number, chance: number): number {
  // All that weigh less than this hold less than 1 - topP together: they are not in the nucleus, and need not be sorted.
  // The most likely token weighs 1 and always is.
  const floor = Math.min(1, ((1 - topP) * total) / Math.max(1, weights.length - 1));
  const sorted = weights.filter((weight) => weight >= floor && weight > 0).sort();
  let count = 0;
  let held = 0;
  while (count < sorted.length && (count === 0 || held < topP * total)) held += sorted[sorted.length - ++count]!;
  const least = sorted[sorted.length - count]!;
  // of those that weigh as little as the least one, the first ones
  let equals = count;
  for (let at = sorted.length - 1; sorted[at]! > least; at--) equals -= 1;
  for (let i = 0; i < weights.length; i++)
    if (weights[i]! < least || (weights[i] === least && equals-- <= 0)) weights[i] = 0;
  return drawWeighted(weights, held * chance);
}

export interface Likelihood {
  id: number;
  logprob: number;
}

/** Natural logarithm of softmax(logits) for the token that was drawn, and for the `count` most likely ones. */
export function likelihoods(logits: Float32Array, id: number, count: number): Likelihood & { top: Likelihood[] } {
  const greatest = logits[greatestOf(logits)]!;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i]! - greatest);
  const shift = greatest + Math.log(sum);
  const of = (one: number): Likelihood => ({ id: one, logprob: logits[one]! - shift });
  return { ...of(id), top: Array.from(mostLikely(logits, count), of) };
}
