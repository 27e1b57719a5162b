import { AppError, type TokenLogprob } from '@perch/contracts';
import { z } from 'zod';
import type { OpenAiApi } from './api.ts';
import { type ChunkWriter, chunkEvents, headOf, readGenerated, usageOf } from './generated.ts';
import { readParameters, readTexts, samplingFields, samplingParameters } from './parameters.ts';

const completionParameters = z.object({
  ...samplingParameters,
  prompt: z.unknown(),
  logprobs: z.number().optional(),
});

/** Tokens with where each begins in the text; `from`: of the first one. */
function logprobsOf(list: readonly TokenLogprob[] | undefined, from: number) {
  if (!list) return null;
  let at = from;
  return {
    tokens: list.map(({ token }) => token),
    token_logprobs: list.map(({ logprob }) => logprob),
    top_logprobs: list.map(({ top }) => Object.fromEntries(top.map(({ token, logprob }) => [token, logprob]))),
    text_offset: list.map(({ token }) => {
      const offset = at;
      at += token.length;
      return offset;
    }),
  };
}

function chunkWriter(): ChunkWriter {
  let offset = 0;
  return {
    object: 'text_completion',
    idPrefix: 'cmpl',
    piece({ piece, logprobs }) {
      const written = logprobsOf(logprobs, offset);
      offset += piece.length;
      return { text: piece, logprobs: written, finish_reason: null };
    },
    last: ({ finishReason }) => ({ text: '', logprobs: null, finish_reason: finishReason }),
  };
}

/** `/v1/completions` */
export const completionsApi: OpenAiApi = {
  task: 'text-generation',
  read(body) {
    const given = readParameters(body, completionParameters);
    const [prompt, ...more] = readTexts(given.prompt, 'prompt');
    if (more.length > 0)
      throw new AppError(
        'invalid',
        `parameter "prompt" has ${more.length + 1} texts, wanted one: send a request for each`,
      );
    return {
      model: given.model,
      body: { ...samplingFields(given), prompt, logprobs: given.logprobs },
      reply(value, about) {
        const reply = readGenerated(value);
        const { text, finishReason, logprobs } = reply;
        const choice = { index: 0, text, logprobs: logprobsOf(logprobs, 0), finish_reason: finishReason };
        return { ...headOf(about, 'cmpl', 'text_completion'), choices: [choice], usage: usageOf(reply) };
      },
      ...(given.stream && {
        events: (about) => chunkEvents(about, chunkWriter(), given.stream_options?.include_usage ?? false),
      }),
    };
  },
};
