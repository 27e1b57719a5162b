export type { InferRequest, InferResponse, NamedTensor, Parameters, RequestedOutput } from '../wire/index.ts';
export { bytesOfElements, elementCount, elementsOf } from '../wire/index.ts';
export { bindGrpc, createGrpcServing, type GrpcServingOptions, stopGrpc } from './grpc-server.ts';
export { createHttpServing, type HttpServingOptions } from './http-server.ts';
export type { LoadParameters, ModelsHost, RepositoryHost, ServingHost } from './model-host.ts';
export { grpcStatus, httpStatus, requestTag, type ServingCode, ServingFault, servingFaultOf } from './serving-fault.ts';
