/**
 * What needs no schema: for code that is started often and read by compilers of other people, above all the SDK in the
 * threads and processes of modules. Everything here is in the main entry, too.
 */
export { AppError, type AppErrorOptions, type ErrorCode, errorCodes, innerMessage } from './error.ts';
export { fromHalfBits } from './half-number.ts';
export {
  type DecodeOptions,
  type ImageBox,
  type ImageFilter,
  type ImageSize,
  imageChoices,
  imageDefaults,
  imageFilters,
  type PreparationOptions,
} from './image-options.ts';
export { parityPathOf } from './parity-path.ts';
export type {
  PipelineCondition,
  PipelineNode,
  PipelineSpecInput,
  PipelineValue,
} from './pipeline-document.ts';
export {
  type DataType,
  dataTypes,
  elementBytes,
  type Signature,
  type Tensor,
  type TensorSpec,
  type Tensors,
} from './tensor.ts';
