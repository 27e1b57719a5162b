/** Token vectors of one batch: `values` is [texts, tokens, size] row-major, `mask` [texts, tokens]. */
export interface TokenVectors {
  values: Float32Array;
  mask: Int32Array;
  texts: number;
  tokens: number;
  size: number;
}

/** Mean over the tokens that the mask keeps; [texts, size]. A text without any gives zeros. */
export function poolMean({ values, mask, texts, tokens, size }: TokenVectors): Float32Array {
  const pooled = new Float32Array(texts * size);
  const sum = new Float64Array(size);
  for (let text = 0; text < texts; text++) {
    sum.fill(0);
    let count = 0;
    for (let token = 0; token < tokens; token++) {
      if (mask[text * tokens + token] === 0) continue;
      count++;
      const from = (text * tokens + token) * size;
      for (let i = 0; i < size; i++) sum[i] = sum[i]! + values[from + i]!;
    }
    const share = 1 / Math.max(1, count);
    for (let i = 0; i < size; i++) pooled[text * size + i] = sum[i]! * share;
  }
  return pooled;
}

/** The vector of each text's first token; [texts, size]. */
export function poolFirst({ values, texts, tokens, size }: TokenVectors): Float32Array {
  const pooled = new Float32Array(texts * size);
  for (let text = 0; text < texts; text++) {
    const from = text * tokens * size;
    pooled.set(values.subarray(from, from + size), text * size);
  }
  return pooled;
}

/** Scales every row of `size` to length 1, in place; a row of zeros stays. */
export function normalizeRows(rows: Float32Array, size: number): Float32Array {
  for (let from = 0; from + size <= rows.length; from += size) {
    let square = 0;
    for (let i = from; i < from + size; i++) square += rows[i]! * rows[i]!;
    const scale = square > 0 ? 1 / Math.sqrt(square) : 1;
    for (let i = from; i < from + size; i++) rows[i] = rows[i]! * scale;
  }
  return rows;
}
