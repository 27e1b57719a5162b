import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constant, node, types, valueInfo, writeModel } from '../../scripts/models/onnx.mjs';

export const title = 'From ClearML-Serving: the same command lines, the Python hooks beside the TypeScript ones';
export const triton = true;

/** The regression that the service there held as a pickle, as ONNX: y = 1 / (1 + exp(-(2·x0 - x1 - 1))). */
const writeRegression = (path) =>
  writeModel(path, {
    weights: [
      constant('w', types.FP32, [2, 1], Float32Array.of(2, -1)),
      constant('b', types.FP32, [1], Float32Array.of(-1)),
    ],
    graph: {
      name: 'regression',
      node: [node('MatMul', ['x', 'w'], ['p']), node('Add', ['p', 'b'], ['s']), node('Sigmoid', ['s'], ['y'])],
      input: [valueInfo('x', types.FP32, ['batch', 2])],
      output: [valueInfo('y', types.FP32, ['batch', 1])],
    },
  });

/** What the service there answered. */
const recorded = [
  [
    { x0: 1, x1: 2 },
    { y: [0], asked: 3 },
  ],
  [
    { x0: 2, x1: 1 },
    { y: [1], asked: 3 },
  ],
  [
    { x0: 0.5, x1: -1 },
    { y: [1], asked: -0.5 },
  ],
];

export async function run(example) {
  const folder = await mkdtemp(join(tmpdir(), 'perch-clearml-'));
  try {
    const model = join(folder, 'model.onnx');
    await writeRegression(model);
    await example.step('model upload, as there', () =>
      example.perch('model', 'upload', '--name', 'train sklearn model', '--project', 'serving examples', '--path', model, '--publish'),
    ); // biome-ignore format: one command
    await example.step('model add --preprocess, with the hooks in TypeScript', () =>
      example.perch(
        'model', 'add', '--engine', 'triton', '--endpoint', 'test_model_sklearn',
        '--preprocess', join(example.folder, 'preprocess.ts'),
        '--name', 'train sklearn model', '--project', 'serving examples',
        '--input-size', '-1', '2', '--input-name', 'x', '--input-type', 'float32',
        '--output-size', '-1', '1', '--output-name', 'y', '--output-type', 'float32', '--wait=120s',
      ),
    ); // biome-ignore format: one command
  } finally {
    await rm(folder, { recursive: true });
  }
  await example.step('metrics add', () =>
    example.perch('metrics', 'add', '--endpoint', 'test_model_sklearn', '--variable-scalar', 'x0=0,1,10', 'y=0/1/5'),
  );
  for (const [body, wanted] of recorded) {
    const got = await example.serve('test_model_sklearn', body);
    example.say(`${JSON.stringify(body)}  ->  ${JSON.stringify(got)}`);
    example.check(JSON.stringify(body), got, wanted);
  }
  const refused = await example.perch('model', 'add', '--engine', 'triton', '--endpoint', 'other', '--preprocess', join(example.folder, 'preprocess.py'), '--name', 'train sklearn model', '--project', 'serving examples').catch((error) => error.message); // biome-ignore format: one command
  example.checkThat('Python hooks are refused with the TypeScript to write', /defineProcessing/.test(refused), refused);
}
