/**
 * Writes ONNX files. The graph's structure goes through `onnx-proto`; weights are framed by hand behind it, one at a
 * time, so that a model of 90 MB never stands in memory as a whole.
 */
import { open } from 'node:fs/promises';
import onnxProto from 'onnx-proto';

const { onnx } = onnxProto;
const wireBytes = 2; // protobuf's length-delimited type
const tensorRawData = 9;
const graphInitializer = 5;
const modelGraph = 7;

export const types = { FP32: 1, INT32: 6, INT64: 7, STRING: 8, BOOL: 9, FP64: 11 };

/** Field header of a length-delimited value. */
function header(field, length) {
  const bytes = [];
  for (let value = (field << 3) | wireBytes; ; value >>>= 7) {
    bytes.push(value > 127 ? (value & 127) | 128 : value);
    if (value <= 127) break;
  }
  for (let value = length; ; value = Math.floor(value / 128)) {
    bytes.push(value > 127 ? (value % 128) | 128 : value);
    if (value <= 127) break;
  }
  return Buffer.from(bytes);
}

const dims = (shape) => shape.map((dim) => (typeof dim === 'string' ? { dimParam: dim } : { dimValue: dim }));

/** Input or output of a graph; a dimension is a number or the name of a variable one. */
export const valueInfo = (name, elemType, shape) => ({
  name,
  type: { tensorType: { elemType, shape: { dim: dims(shape) } } },
});

const attributeTypes = { f: 1, i: 2, s: 3, ints: 7 };
/** Node with attributes given as `{ axis: { i: -1 } }`. */
export const node = (opType, input, output, attributes = {}) => ({
  opType,
  name: output[0],
  input,
  output,
  attribute: Object.entries(attributes).map(([name, value]) => ({
    name,
    type: attributeTypes[Object.keys(value)[0]],
    ...value,
  })),
});

const bytesOf = (view) => Buffer.from(view.buffer, view.byteOffset, view.byteLength);
/** A small weight that is at hand. */
export const constant = (name, dataType, shape, view) => ({
  name,
  dataType,
  dims: shape,
  sizeBytes: view.byteLength,
  read: async () => bytesOf(view),
});

/**
 * @param path file to write (must not exist)
 * @param model `{ graph: {name, node, input, output}, weights: [{name, dataType, dims, sizeBytes, read}], opset, metadata }`
 */
export async function writeModel(path, { graph, weights, opset = 17, metadata = {} }) {
  const head = onnx.ModelProto.encode({
    irVersion: 8,
    producerName: 'perch',
    opsetImport: [{ domain: '', version: opset }],
    metadataProps: Object.entries(metadata).map(([key, value]) => ({ key, value })),
  }).finish();
  const structure = onnx.GraphProto.encode(graph).finish();
  const framed = weights.map((weight) => {
    const { name, dataType, dims: shape, sizeBytes } = weight;
    const meta = onnx.TensorProto.encode({ name, dataType, dims: shape }).finish();
    const raw = header(tensorRawData, sizeBytes);
    return { weight, lead: Buffer.concat([header(graphInitializer, meta.length + raw.length + sizeBytes), meta, raw]) };
  });
  const graphBytes = framed.reduce((sum, { weight, lead }) => sum + lead.length + weight.sizeBytes, structure.length);
  const file = await open(path, 'wx');
  try {
    await file.write(Buffer.concat([head, header(modelGraph, graphBytes), structure]));
    for (const { weight, lead } of framed) {
      const data = await weight.read();
      if (data.length !== weight.sizeBytes)
        throw new Error(`${weight.name}: ${data.length} bytes, wanted ${weight.sizeBytes}`);
      await file.writev([lead, data]);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}
