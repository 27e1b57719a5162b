/**
 * Trains the small network of this example on the 2,201 people of the Titanic, as R's data set `Titanic` counts them
 * (Dawson, "The 'Unusual Episode' Data Revisited", 1995), and writes it as ONNX. Deterministic: the same bytes each time.
 *
 *     node examples/titanic/model.mjs [folder]       prints the folder
 */
import { join } from 'node:path';
import { cachedFolder } from '../../scripts/models/cache.mjs';
import { constant, node, types, valueInfo, writeModel } from '../../scripts/models/onnx.mjs';

/** [class, sex, age, died, survived]; classes 1st, 2nd, 3rd, crew. */
const people = [
  [0, 'male', 'child', 0, 5], [0, 'female', 'child', 0, 1], [0, 'male', 'adult', 118, 57], [0, 'female', 'adult', 4, 140],
  [1, 'male', 'child', 0, 11], [1, 'female', 'child', 0, 13], [1, 'male', 'adult', 154, 14], [1, 'female', 'adult', 13, 80],
  [2, 'male', 'child', 35, 13], [2, 'female', 'child', 17, 14], [2, 'male', 'adult', 387, 75], [2, 'female', 'adult', 89, 76],
  [3, 'male', 'adult', 670, 192], [3, 'female', 'adult', 3, 20],
]; // biome-ignore format: a table

/** One-hot class, then female, then child. */
const features = ([rank, sex, age]) => [0, 1, 2, 3].map((one) => Number(one === rank)).concat(Number(sex === 'female'), Number(age === 'child')); // biome-ignore format: one row
const inputs = 6;
const hidden = 8;

/** Numbers from -0.5 to 0.5, the same ones each time (a linear congruential generator of Numerical Recipes). */
function seeded(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** Gradient descent on the log-likelihood of all rows, each weighted by its people. */
function train() {
  const random = seeded(7);
  const w1 = Float64Array.from({ length: inputs * hidden }, random);
  const b1 = new Float64Array(hidden);
  const w2 = Float64Array.from({ length: hidden }, random);
  let b2 = 0;
  const rows = people.map((row) => ({ x: features(row), died: row[3], survived: row[4] }));
  const total = rows.reduce((sum, { died, survived }) => sum + died + survived, 0);
  for (let epoch = 0; epoch < 20_000; epoch += 1) {
    const g1 = new Float64Array(w1.length);
    const gb1 = new Float64Array(hidden);
    const g2 = new Float64Array(hidden);
    let gb2 = 0;
    for (const { x, died, survived } of rows) {
      const h = forward(x, w1, b1);
      const p = sigmoid(h.reduce((sum, value, at) => sum + value * w2[at], b2));
      const error = (p * (died + survived) - survived) / total;
      gb2 += error;
      for (let j = 0; j < hidden; j += 1) {
        g2[j] += error * h[j];
        const back = error * w2[j] * (1 - h[j] ** 2);
        gb1[j] += back;
        for (let i = 0; i < inputs; i += 1) g1[i * hidden + j] += back * x[i];
      }
    }
    const step = 2;
    for (let at = 0; at < w1.length; at += 1) w1[at] -= step * g1[at];
    for (let at = 0; at < hidden; at += 1) {
      b1[at] -= step * gb1[at];
      w2[at] -= step * g2[at];
    }
    b2 -= step * gb2;
  }
  return { w1, b1, w2, b2 };
}

const forward = (x, w1, b1) =>
  Array.from({ length: hidden }, (_, j) =>
    Math.tanh(x.reduce((sum, value, i) => sum + value * w1[i * hidden + j], b1[j])),
  );

async function build(folder) {
  const { w1, b1, w2, b2 } = train();
  const floats = (name, shape, values) => constant(name, types.FP32, shape, Float32Array.from(values));
  await writeModel(join(folder, 'model.onnx'), {
    weights: [
      floats('w1', [inputs, hidden], w1),
      floats('b1', [hidden], b1),
      floats('w2', [hidden, 1], w2),
      floats('b2', [1], [b2]),
    ],
    graph: {
      name: 'titanic',
      node: [
        node('MatMul', ['passengers', 'w1'], ['a']),
        node('Add', ['a', 'b1'], ['b']),
        node('Tanh', ['b'], ['c']),
        node('MatMul', ['c', 'w2'], ['d']),
        node('Add', ['d', 'b2'], ['e']),
        node('Sigmoid', ['e'], ['probability']),
      ],
      input: [valueInfo('passengers', types.FP32, ['batch', inputs])],
      output: [valueInfo('probability', types.FP32, ['batch', 1])],
    },
    metadata: { model: 'titanic' },
  });
}

/** Folder with model.onnx, built once a machine. */
export const titanicFolder = () => cachedFolder('titanic.r1', build);

/** Share of those who survived, by class, sex and age: what the network should come near. */
export const survivors = people.map(([rank, sex, age, died, survived]) => ({
  class: ['1st', '2nd', '3rd', 'crew'][rank],
  sex,
  age,
  count: died + survived,
  share: survived / (died + survived),
}));

if (process.argv[1] && import.meta.filename === process.argv[1]) console.log(await titanicFolder());
