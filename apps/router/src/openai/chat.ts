import { AppError, type ChatMessage, type TextGenerationReply, type TokenLogprob } from '@perch/contracts';
import { z } from 'zod';
import type { OpenAiApi } from './api.ts';
import { type ChunkWriter, chunkEvents, headOf, readGenerated, usageOf } from './generated.ts';
import { readParameters, samplingFields, samplingParameters } from './parameters.ts';

const part = z.looseObject({ type: z.string(), text: z.string().optional() });
const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z.union([z.string(), z.array(part)]).nullish(),
});

const chatParameters = z.object({
  ...samplingParameters,
  messages: z.array(message),
  max_completion_tokens: z.number().optional(),
  logprobs: z.boolean().optional(),
  top_logprobs: z.number().optional(),
});

function readMessage({ role, content, ...rest }: z.infer<typeof message>, index: number): ChatMessage {
  const calls = ['tool_calls', 'function_call', 'audio'].find(
    (name) => rest[name] !== undefined && rest[name] !== null,
  );
  if (calls) throw new AppError('invalid', `messages[${index}].${calls} is not supported here`);
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  const other = parts.find(({ type, text }) => type !== 'text' || text === undefined);
  if (other)
    throw new AppError('invalid', `messages[${index}].content has a part of type "${other.type}", wanted text`);
  return { role: role === 'developer' ? 'system' : role, content: parts.map(({ text }) => text).join('') };
}

const oneLogprob = ({ token, logprob }: Pick<TokenLogprob, 'token' | 'logprob'>) => ({
  token,
  logprob,
  bytes: [...Buffer.from(token)],
});
const logprobsOf = (list: readonly TokenLogprob[] | undefined) =>
  list
    ? { content: list.map((one) => ({ ...oneLogprob(one), top_logprobs: one.top.map(oneLogprob) })), refusal: null }
    : null;

const chunks: ChunkWriter = {
  object: 'chat.completion.chunk',
  idPrefix: 'chatcmpl',
  opening: { delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null },
  piece: ({ piece, logprobs }) => ({ delta: { content: piece }, logprobs: logprobsOf(logprobs), finish_reason: null }),
  last: ({ finishReason }) => ({ delta: {}, logprobs: null, finish_reason: finishReason }),
};

const choiceOf = ({ text, finishReason, logprobs }: TextGenerationReply) => ({
  index: 0,
  message: { role: 'assistant', content: text, refusal: null },
  logprobs: logprobsOf(logprobs),
  finish_reason: finishReason,
});

/** `/v1/chat/completions` */
export const chatApi: OpenAiApi = {
  task: 'text-generation',
  read(body) {
    const given = readParameters(body, chatParameters);
    if (given.top_logprobs !== undefined && !given.logprobs)
      throw new AppError('invalid', 'parameter "top_logprobs" wants "logprobs": true');
    return {
      model: given.model,
      body: {
        ...samplingFields({ ...given, max_tokens: given.max_completion_tokens ?? given.max_tokens }),
        messages: given.messages.map(readMessage),
        logprobs: given.logprobs ? (given.top_logprobs ?? 0) : undefined,
      },
      reply(value, about) {
        const reply = readGenerated(value);
        return { ...headOf(about, 'chatcmpl', 'chat.completion'), choices: [choiceOf(reply)], usage: usageOf(reply) };
      },
      ...(given.stream && {
        events: (about) => chunkEvents(about, chunks, given.stream_options?.include_usage ?? false),
      }),
    };
  },
};
