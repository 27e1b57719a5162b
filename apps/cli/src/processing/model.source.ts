import type { Signature, Tensors } from '@perch/contracts';

/** What a module that is run here asks: the model of an endpoint, or a recording of one. */
export interface ModelSource {
  signature: Signature;
  /** 0: the model declares no batch dimension. */
  maxBatchSize: number;
  infer(inputs: Tensors): Promise<Tensors>;
  /** `ctx.serve`: another endpoint's JSON value. */
  serve(endpoint: string, body: unknown, contentType: string | undefined): Promise<unknown>;
}
