import {
  AppError,
  parseWith,
  type TextGenerationOptions,
  type TextGenerationRequest,
  textGenerationRequest,
} from '@perch/contracts';
import { kindOf } from '../json-body.ts';
import type { Sampling } from './sampling.ts';

/** A request with everything filled in. */
export interface Generation extends Sampling {
  prompt: Pick<TextGenerationRequest, 'prompt' | 'messages'>;
  maxTokens: number;
  minTokens: number;
  /** Beside those of the options. */
  stop: readonly string[];
  stopTokenIds: readonly number[];
  seed: number | undefined;
  /** Most likely tokens beside each one; undefined: no log-probabilities. */
  logprobs: number | undefined;
}

/** Throws `invalid` that names the field, `unsupported_media_type` for a body that is not JSON. */
export function readGeneration(body: unknown, options: TextGenerationOptions): Generation {
  if (Buffer.isBuffer(body))
    throw new AppError('unsupported_media_type', 'the body is not JSON, wanted application/json');
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new AppError('invalid', `the body is ${kindOf(body)}, wanted {"prompt": "…"} or {"messages": […]}`);
  const {
    prompt,
    messages,
    stop = [],
    stopTokenIds = [],
    seed,
    logprobs,
    ...given
  } = parseWith(textGenerationRequest, body, 'the body');
  const wanted = { ...options.defaults, ...given };
  const { mostTokens } = options;
  if (given.maxTokens !== undefined && given.maxTokens > mostTokens)
    throw new AppError('invalid', `maxTokens is ${given.maxTokens}, and this endpoint gives ${mostTokens} at most`);
  const maxTokens = Math.min(wanted.maxTokens, mostTokens);
  if (wanted.minTokens > maxTokens)
    throw new AppError('invalid', `minTokens is ${wanted.minTokens}, more than maxTokens (${maxTokens})`);
  const { minTokens, temperature, topK, topP } = wanted;
  return {
    prompt: { ...(prompt !== undefined && { prompt }), ...(messages && { messages }) },
    maxTokens,
    minTokens,
    temperature,
    topK,
    topP,
    stop: typeof stop === 'string' ? [stop] : stop,
    stopTokenIds,
    seed,
    logprobs,
  };
}
