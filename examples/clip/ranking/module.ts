import { defineProcessing, invalid } from '@perch/processing';

interface Request {
  /** What is compared with all others. */
  query: number[];
  /** Vectors; those of one name behind one another. */
  candidates: number[][];
  names: string[];
  /** How many vectors each name has; their mean stands for it. Default 1. */
  each?: number;
}

const unit = (vector: number[]): number[] => {
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
};

const mean = (vectors: number[][]): number[] =>
  vectors[0]!.map((_, at) => vectors.reduce((sum, vector) => sum + vector[at]!, 0) / vectors.length);

/** Names by how near their vectors are to the query: cosines, and softmax of a hundred times them as in CLIP. */
export default defineProcessing({
  preprocess(body: Request) {
    const { query, candidates, names, each = 1 } = body;
    if (!Array.isArray(query) || !Array.isArray(candidates) || !Array.isArray(names))
      throw invalid('wanted query, candidates and names');
    if (candidates.length !== names.length * each)
      throw invalid(`${names.length} names with ${each} vectors each want ${names.length * each}, got ${candidates.length}`); // biome-ignore format: one sentence
    return { inputs: {}, carry: { query: unit(query), candidates: candidates.map(unit), names, each } };
  },
  process(_inputs, { carry: { query, candidates, names, each } }) {
    const cosines = names.map((_, at) => {
      const vector = unit(mean(candidates.slice(at * each, (at + 1) * each)));
      return vector.reduce((sum, value, axis) => sum + value * query[axis]!, 0);
    });
    const most = Math.max(...cosines);
    const shares = cosines.map((cosine) => Math.exp(100 * (cosine - most)));
    const sum = shares.reduce((a, b) => a + b);
    const order = names.map((name, at) => ({ name, similarity: cosines[at]!, score: shares[at]! / sum }));
    return { ranking: order.sort((a, b) => b.similarity - a.similarity) };
  },
});
