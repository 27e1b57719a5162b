import { AppError } from '@perch/contracts';
import { z } from 'zod';
import type { OpenAiApi } from './api.ts';
import { readParameters, readTexts } from './parameters.ts';

const embeddingParameters = z.object({
  model: z.string().min(1).max(512),
  input: z.unknown(),
  encoding_format: z.enum(['float', 'base64']).default('float'),
});

/** A vector as the client asked for it: numbers, or little-endian float32 as base64. */
function encoded(vector: unknown, format: 'float' | 'base64'): unknown {
  const isBase64 = typeof vector === 'string';
  if (!isBase64 && !(Array.isArray(vector) && vector.every((value) => typeof value === 'number')))
    throw new AppError('module', "the endpoint's module answered something else than one vector for each text");
  if (isBase64 === (format === 'base64')) return vector;
  if (!isBase64) return Buffer.from(Float32Array.from(vector).buffer).toString('base64');
  const bytes = Uint8Array.from(Buffer.from(vector, 'base64'));
  return [...new Float32Array(bytes.buffer, 0, bytes.length >> 2)];
}

/** `embeddings`, or whatever one field the endpoint's options name. */
function vectorsOf(value: unknown): unknown[] {
  const lists = Object.values(value ?? {}).filter((field) => Array.isArray(field));
  if (lists.length !== 1) throw new AppError('module', "the endpoint's module answered no list of embeddings");
  return lists[0] as unknown[];
}

/** As the built-in counted them, or as a module says in its reply (its state stays in its thread); else 0. */
function tokensOf(value: unknown, { promptTokens }: Record<string, unknown>): number {
  const { usage } = value as { usage?: { promptTokens?: unknown } | null };
  const told = promptTokens || usage?.promptTokens;
  return typeof told === 'number' ? told : 0;
}

/** `/v1/embeddings` */
export const embeddingsApi: OpenAiApi = {
  task: 'text-embedding',
  read(body) {
    const { model, input, encoding_format: format } = readParameters(body, embeddingParameters);
    const texts = readTexts(input, 'input');
    return {
      model,
      body: { input: texts },
      reply(value, about, state) {
        const vectors = vectorsOf(value);
        if (vectors.length !== texts.length)
          throw new AppError(
            'module',
            `the endpoint's module answered ${vectors.length} embeddings for ${texts.length} texts`,
          );
        const tokens = tokensOf(value, state);
        return {
          object: 'list',
          data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: encoded(vector, format) })),
          model: about.model,
          usage: { prompt_tokens: tokens, total_tokens: tokens },
        };
      },
    };
  },
};
