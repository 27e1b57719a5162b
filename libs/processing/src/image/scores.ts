export interface LabelScore {
  label: string;
  score: number;
}

export interface Ranking extends LabelScore {
  /** The likeliest first. */
  scores: LabelScore[];
}

/** Numbers of one row as shares that add to 1; the largest is taken away first, so that nothing overflows. */
export function softmax(row: ArrayLike<number>): Float64Array {
  const shares = Float64Array.from(row);
  const most = shares.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  let sum = 0;
  for (let i = 0; i < shares.length; i++) {
    shares[i] = Math.exp(shares[i]! - most);
    sum += shares[i]!;
  }
  return shares.map((share) => share / sum);
}

export const sigmoid = (row: ArrayLike<number>): Float64Array =>
  Float64Array.from(row, (value) => 1 / (1 + Math.exp(-value)));

/** The `topK` largest scores with their labels; equal ones in the order of their labels. A class without a label is its number. */
export function rank(scores: ArrayLike<number>, labels: readonly string[], topK: number): Ranking {
  const order = Array.from({ length: scores.length }, (_, i) => i);
  order.sort((a, b) => scores[b]! - scores[a]! || a - b);
  const best = order.slice(0, topK).map((i) => ({ label: labels[i] ?? String(i), score: scores[i]! }));
  return { ...best[0]!, scores: best };
}
