/**
 * A detector of coloured patches, made by hand: how far a pixel is from gray (its highest level less its lowest), averaged
 * over cells of 4 x 4 pixels. Writes model.onnx.
 *
 *     node examples/detect-crop-embed/model.mjs       prints the folder
 */
import { join } from 'node:path';
import { cachedFolder } from '../../scripts/models/cache.mjs';
import { node, types, valueInfo, writeModel } from '../../scripts/models/onnx.mjs';

const cell = { ints: [4, 4] };
const acrossChannels = { axes: { ints: [1] }, keepdims: { i: 1 } };

/** Folder with model.onnx, built once a machine. */
export const detectorFolder = () =>
  cachedFolder('colour-detector.r1', (folder) =>
    writeModel(join(folder, 'model.onnx'), {
      weights: [],
      graph: {
        name: 'patches',
        node: [
          node('ReduceMax', ['pixels'], ['highest'], acrossChannels),
          node('ReduceMin', ['pixels'], ['lowest'], acrossChannels),
          node('Sub', ['highest', 'lowest'], ['colourful']),
          node('AveragePool', ['colourful'], ['cells'], { kernel_shape: cell, strides: cell }),
        ],
        input: [valueInfo('pixels', types.FP32, ['batch', 3, 'height', 'width'])],
        output: [valueInfo('cells', types.FP32, ['batch', 1, 'rows', 'columns'])],
      },
    }),
  );

if (process.argv[1] && import.meta.filename === process.argv[1]) console.log(await detectorFolder());
