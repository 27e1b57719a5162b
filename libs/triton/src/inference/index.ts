export { inferAnswer } from '../server/json-answers.ts';
export { type HttpInfer, readJsonInfer } from '../server/json-request.ts';
export {
  binaryPartsOf,
  decodeHttpResponse,
  type FaultKind,
  headerLengthName,
  type InferRequest,
  type InferResponse,
  type NamedTensor,
  TritonFault,
} from '../wire/index.ts';
export { ChunkedBody } from './chunked-body.ts';
export { ConnectionFault, type Reached } from './connection-fault.ts';
export { GrpcTransport } from './grpc.client.ts';
export { HttpTransport } from './http.client.ts';
export type {
  CallOptions,
  Cancellation,
  ForwardReply,
  ForwardRequest,
  InferenceServer,
  InferenceTransport,
} from './transport.ts';
