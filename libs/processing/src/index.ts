/** The SDK: what a module or a pipeline in TypeScript imports. It is loaded in every thread and process of a module, so it stays light. */
export { bytesOf } from './body.ts';
export {
  type AnyModule,
  type CallContext,
  defineProcessing,
  type EncodeOptions,
  type FileSource,
  type LoadSetup,
  type ModuleDeclaration,
  type ModuleFiles,
  type Padding,
  type Preprocessed,
  type ProcessingModule,
  type ServeOptions,
  type TextDecodeOptions,
  type TextDecoding,
  type TextOrPair,
  type TextTokenizer,
  type TokenBatch,
} from './contract.ts';
export { fromBrainHalves, fromHalves } from './half.ts';
export { type DecodeOptions, decodeImage } from './image/decode.ts';
export { type EncodeImageOptions, encodeImage } from './image/encode.ts';
export { imageTensor, type PreparationOptions } from './image/image-tensor.ts';
export { crop, type Picture, type PictureBox, toGray } from './image/picture.ts';
export { type PreprocessorOptions, readPreprocessorConfig } from './image/preprocessor-config.ts';
export { type Resizing, resize } from './image/resample.ts';
export { invalid } from './invalid.ts';
export {
  definePipeline,
  each,
  type MapSettings,
  type NodeSettings,
  optional,
  type Picked,
  type PipelineBuilder,
} from './pipeline/define-pipeline.ts';
export {
  asBytes,
  asFloat32,
  asFloat64,
  asInt8,
  asInt16,
  asInt32,
  asInt64,
  asUint8,
  asUint16,
  asUint32,
  asUint64,
  bfloat16,
  bool,
  bytes,
  elementCount,
  float16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
} from './tensor.ts';
export { asFloats, nestedOf, tensor } from './tensor-of.ts';
