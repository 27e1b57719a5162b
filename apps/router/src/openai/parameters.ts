import { AppError, parseWith } from '@perch/contracts';
import { z } from 'zod';

/** Change nothing of the text: taken and not looked at. */
const ignored = new Set([
  'metadata', 'moderation', 'parallel_tool_calls', 'prediction', 'prompt_cache_key', 'prompt_cache_options',
  'prompt_cache_retention', 'safety_identifier', 'service_tier', 'store', 'user',
]); // biome-ignore format: one list

const isEmpty = (value: unknown): boolean => typeof value === 'object' && Object.keys(value ?? {}).length === 0;
const oneOf =
  (...values: unknown[]) =>
  (value: unknown) =>
    values.includes(value);

/** Would change the text, and are not there: taken only with the value that asks for nothing. */
const neutral: Record<string, (value: unknown) => boolean> = {
  n: oneOf(1),
  best_of: oneOf(1),
  echo: oneOf(false),
  suffix: oneOf(''),
  frequency_penalty: oneOf(0),
  presence_penalty: oneOf(0),
  logit_bias: isEmpty,
  tools: isEmpty,
  functions: isEmpty,
  tool_choice: oneOf('none', 'auto'),
  function_call: oneOf('none', 'auto'),
  modalities: (value) => JSON.stringify(value) === '["text"]',
  response_format: (value) => (value as { type?: unknown } | undefined)?.type === 'text',
};

/**
 * The parameters of a request that mean something here, `null` counting as left out. Throws `invalid` that names the first
 * one that is not served: a request is never answered as if a part of it had not been asked.
 */
export function readParameters<T>(body: unknown, schema: z.ZodType<T> & { shape: object }): T {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new AppError('invalid', 'the body is not a JSON object');
  const known: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) {
    if (value === null || ignored.has(name)) continue;
    if (Object.hasOwn(schema.shape, name)) known[name] = value;
    else if (neutral[name] === undefined) throw new AppError('invalid', `unknown parameter "${name.slice(0, 64)}"`);
    else if (!neutral[name](value))
      throw new AppError('invalid', `parameter "${name}" is not supported here: leave it out`);
  }
  return parseWith(schema, known, 'the request');
}

/** The text of a prompt or of an input that may be a list of texts. Throws `invalid` for ids of tokens. */
export function readTexts(value: unknown, name: string): string[] {
  const list = Array.isArray(value) ? value : [value];
  if (list.length > 0 && list.every((one) => typeof one === 'string')) return list;
  const given =
    list.flat().every((one) => typeof one === 'number') && list.length > 0 ? 'ids of tokens' : 'something else';
  throw new AppError('invalid', `parameter "${name}" is ${given}, wanted a text or a list of texts`);
}

/** Parameters that chat and plain completions share, by OpenAI's names; the last three are no part of OpenAI's own. */
export const samplingParameters = {
  model: z.string().min(1).max(512),
  max_tokens: z.number().optional(),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  seed: z.number().optional(),
  stop: z.union([z.string(), z.array(z.string())]).optional(),
  stream: z.boolean().optional(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).optional(),
  top_k: z.number().optional(),
  min_tokens: z.number().optional(),
  stop_token_ids: z.array(z.number()).optional(),
};
const sampling = z.object(samplingParameters);

/** The same as fields of the task. */
export function samplingFields(given: z.infer<typeof sampling>): Record<string, unknown> {
  const { stop } = given;
  return {
    maxTokens: given.max_tokens,
    minTokens: given.min_tokens,
    temperature: given.temperature,
    // nothing is left to draw from at 0: OpenAI takes it as the least there is
    topP: given.top_p === 0 ? Number.MIN_VALUE : given.top_p,
    topK: given.top_k,
    seed: given.seed,
    stop: typeof stop === 'string' ? [stop].filter(Boolean) : stop,
    stopTokenIds: given.stop_token_ids,
    stream: given.stream,
  };
}
