/** Values of request and response parameters that both HTTP and gRPC can carry. */
export type ParameterValue = string | number | boolean;
export type Parameters = Record<string, ParameterValue>;

/** One tensor by name. `bytes` is Triton's binary form; `shape` holds the batch dimension where the model batches. */
export interface NamedTensor {
  name: string;
  datatype: string;
  shape: number[];
  bytes: Uint8Array;
  parameters?: Parameters;
}

export interface RequestedOutput {
  name: string;
  parameters?: Parameters;
}

/** An inference request without its transport. `outputs` left out or empty: every output of the model. */
export interface InferRequest {
  modelName: string;
  /** Decimal text; left out or empty: the highest ready version. */
  modelVersion?: string;
  id?: string;
  parameters?: Parameters;
  inputs: NamedTensor[];
  outputs?: RequestedOutput[];
}

export interface InferResponse {
  modelName: string;
  /** The version that ran. */
  modelVersion: string;
  id?: string;
  parameters?: Parameters;
  outputs: NamedTensor[];
}
