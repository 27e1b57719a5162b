export { type FaultKind, faultKinds, grpcFault, httpFault, kindOfGrpc, kindOfHttp, TritonFault } from './fault.ts';
export {
  callUnary,
  channelOptions,
  healthMethods,
  inferMethod,
  type Method,
  openChannel,
  restrictedMetadata,
  serviceMethods,
  type UnaryOptions,
} from './grpc.client.ts';
export {
  binaryPartsOf,
  bodyOf,
  decodeHttpResponse,
  encodeHttpRequest,
  encodeHttpResponse,
  type HttpBody,
  headerLengthName,
} from './http-body.ts';
export type { InferRequest, InferResponse, NamedTensor, Parameters, ParameterValue, RequestedOutput } from './infer.ts';
export { decodeInferRequest, decodeInferResponse, encodeInferRequest, encodeInferResponse } from './infer-message.ts';
export { bytesOfJson, elementCount, elementsOf, jsonTextOf } from './json-tensor.ts';
export { messageType, plainOf, protocol } from './messages.ts';
export { bytesOfContents, bytesOfElements } from './typed-contents.ts';
