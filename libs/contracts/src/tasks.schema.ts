import { z } from 'zod';
import { imageRankingReply, imageRequest, zeroShotImageRequest } from './image-processing.schema.ts';
import { textClassificationReply, textClassificationRequest } from './text-processing.schema.ts';

/** What requests and replies of a task look like: the same for built-ins, registered modules and the OpenAI paths. */
export interface TaskTypes {
  request: z.ZodType;
  reply: z.ZodType;
  /** What is streamed ahead of the reply; absent: the task does not stream. */
  event?: z.ZodType;
}

const tokenId = z.number().int().min(0).max(4_294_967_295);
const embeddingText = z.union([z.string(), z.array(z.string()).min(1)]);
/** Numbers, or little-endian float32 as base64. */
const embeddingVector = z.union([z.array(z.number()), z.string()]);

/** One text or a list, in one of three fields. */
export const textEmbeddingRequest = z.union([
  z.looseObject({ text: embeddingText }),
  z.looseObject({ inputs: embeddingText }),
  z.looseObject({ input: embeddingText }),
]);
const embeddingUsage = z.looseObject({ promptTokens: z.number().int().min(0) }).optional();
/** `embedding` for one text, `embeddings` for a list. */
export const textEmbeddingReply = z.union([
  z.looseObject({ embedding: embeddingVector, usage: embeddingUsage }),
  z.looseObject({ embeddings: z.array(embeddingVector), usage: embeddingUsage }),
]);

export const chatRoles = ['system', 'user', 'assistant', 'tool'] as const;
export const chatMessage = z.strictObject({ role: z.enum(chatRoles), content: z.string() });
export type ChatMessage = z.infer<typeof chatMessage>;

const stopText = z.string().min(1).max(256);

/** Either `prompt` or `messages`. What is left out is as the endpoint's options say. */
export const textGenerationRequest = z
  .strictObject({
    prompt: z.string().optional(),
    messages: z.array(chatMessage).min(1).max(1_024).optional(),
    maxTokens: z.number().int().min(1).max(131_072).optional(),
    /** Until so many are there, no stop token is drawn and no stop string ends it. */
    minTokens: z.number().int().min(0).max(131_072).optional(),
    /** 0: the most likely token every time. */
    temperature: z.number().min(0).max(100).optional(),
    /** Only the so many most likely tokens are drawn from; 0: all. */
    topK: z.number().int().min(0).max(1_000_000).optional(),
    /** Only the fewest tokens that together have this probability are drawn from; 1: all. */
    topP: z.number().gt(0).max(1).optional(),
    /** Texts that end it; they are not part of the reply. */
    stop: z.union([stopText, z.array(stopText).max(16)]).optional(),
    /** Tokens that end it, beside the model's own. */
    stopTokenIds: z.array(tokenId).max(64).optional(),
    /** The same seed, request and version give the same text. Left out: another one each time. */
    seed: z.number().int().min(-9_007_199_254_740_991).max(9_007_199_254_740_991).optional(),
    /** Log-probability of each token, and of so many most likely ones beside it. */
    logprobs: z.number().int().min(0).max(20).optional(),
    stream: z.boolean().optional(),
  })
  .refine(({ prompt, messages }) => (prompt === undefined) !== (messages === undefined), {
    message: 'wants either prompt or messages',
  })
  .meta({ id: 'TextGenerationRequest' });
export type TextGenerationRequest = z.infer<typeof textGenerationRequest>;

/** Natural logarithms, of the model's own distribution before temperature, top-k and top-p. */
const oneLogprob = z.object({ token: z.string(), id: tokenId, logprob: z.number() });
export const tokenLogprob = oneLogprob.extend({ top: z.array(oneLogprob) });
export type TokenLogprob = z.infer<typeof tokenLogprob>;

export const textGenerationReply = z
  .object({
    text: z.string(),
    /** `length`: maxTokens or the model's context was reached. */
    finishReason: z.enum(['stop', 'length']),
    usage: z.object({ promptTokens: z.number().int().min(0), completionTokens: z.number().int().min(0) }),
    logprobs: z.array(tokenLogprob).optional(),
  })
  .meta({ id: 'TextGenerationReply' });
export type TextGenerationReply = z.infer<typeof textGenerationReply>;

/** One piece of the text: all of them together are the reply's `text`, their `logprobs` those of the reply. */
export const textGenerationEvent = z
  .object({ piece: z.string(), logprobs: z.array(tokenLogprob).optional() })
  .meta({ id: 'TextGenerationEvent' });
export type TextGenerationEvent = z.infer<typeof textGenerationEvent>;

/** Tasks whose requests and replies are written down; any other name is a task as well, of its author's own making. */
export const tasks: Readonly<Record<string, TaskTypes>> = {
  'text-embedding': { request: textEmbeddingRequest, reply: textEmbeddingReply },
  'text-classification': { request: textClassificationRequest, reply: textClassificationReply },
  'text-generation': { request: textGenerationRequest, reply: textGenerationReply, event: textGenerationEvent },
  'image-classification': { request: imageRequest, reply: imageRankingReply },
  'image-embedding': { request: imageRequest, reply: textEmbeddingReply },
  'zero-shot-image-classification': {
    request: zeroShotImageRequest,
    reply: z.union([imageRankingReply, textEmbeddingReply]),
  },
};
