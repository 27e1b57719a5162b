import { decodeHttpResponse, type ForwardReply, type InferResponse } from '@perch/triton/inference';
import type { HttpExchange } from '../http1/index.ts';
import type { ComparedOutput } from './comparison.decide.ts';
import type { Asked, SeenOutput } from './contract.decide.ts';
import { askedBy, seeOutputs } from './oip-outputs.ts';

/** What a model server answered, as far as it is judged and compared. */
export interface JudgedReply {
  sizeBytes: number;
  /** Undefined: it could not be read. */
  outputs(): readonly SeenOutput[] | undefined;
  /** In binary form, for a comparison; undefined: it could not be read. */
  tensors(): readonly ComparedOutput[] | undefined;
  /** What the request asked for beyond the plain outputs. */
  asked?: Asked;
}

export function judgedTensors({ outputs }: InferResponse): JudgedReply {
  let sizeBytes = 0;
  for (const { bytes } of outputs) sizeBytes += bytes.length;
  return { sizeBytes, outputs: () => outputs, tensors: () => outputs };
}

/** An answer of a module without a value. */
export const judgedNothing: JudgedReply = { sizeBytes: 0, outputs: () => [], tensors: () => undefined };

export function judgedForward(
  { body, headerLength }: ForwardReply,
  request: Pick<HttpExchange, 'head' | 'body'>,
): JudgedReply {
  return {
    sizeBytes: body.length,
    outputs: () => seeOutputs(body, headerLength),
    tensors: () => readTensors(body, headerLength),
    asked: askedBy(request),
  };
}

function readTensors(body: Buffer, headerLength: number | undefined): ComparedOutput[] | undefined {
  try {
    return decodeHttpResponse(body, headerLength).outputs;
  } catch {
    return undefined; // NaN written as JSON, or no answer of the protocol: both are faults of the contract
  }
}
