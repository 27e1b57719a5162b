import {
  AppError,
  type TextGenerationEvent,
  type TextGenerationReply,
  textGenerationEvent,
  textGenerationReply,
} from '@perch/contracts';
import type { z } from 'zod';
import { dataLines, type EventFormat } from '../serving/reply-events.ts';
import type { About } from './api.ts';
import { openAiError } from './openai-error.ts';

function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (data !== undefined) return data;
  const [issue] = error!.issues;
  throw new AppError('module', `the endpoint's module answered no text: ${issue!.path.join('.')} ${issue!.message}`);
}

export const readGenerated = (value: unknown): TextGenerationReply => checked(textGenerationReply, value);

export const usageOf = ({ usage: { promptTokens, completionTokens } }: TextGenerationReply) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
});

/** How one protocol writes its chunks; `undefined` where it has none for that. */
export interface ChunkWriter {
  object: string;
  idPrefix: string;
  /** Ahead of the first piece. */
  opening?: object;
  piece(event: TextGenerationEvent): object;
  last(reply: TextGenerationReply): object;
}

export const headOf = ({ model, requestId, created }: About, idPrefix: string, object: string) => ({
  id: `${idPrefix}-${requestId}`,
  object,
  created,
  model,
});

/** Chunks, then what ended it, then the usage where it was asked for, then `[DONE]`. */
export function chunkEvents(about: About, writer: ChunkWriter, includeUsage: boolean): EventFormat {
  const head = headOf(about, writer.idPrefix, writer.object);
  const noUsage = includeUsage ? { usage: null } : {};
  const chunk = (choice: object): string =>
    dataLines(JSON.stringify({ ...head, choices: [{ index: 0, ...choice }], ...noUsage }));
  let begun = false;
  const opening = (): string => {
    const text = !begun && writer.opening ? chunk(writer.opening) : '';
    begun = true;
    return text;
  };
  const piece = (value: unknown): string => opening() + chunk(writer.piece(checked(textGenerationEvent, value)));
  return {
    event: piece,
    result(json) {
      const reply = readGenerated(JSON.parse(json));
      const { text, logprobs } = reply;
      // a module may answer at once although the client asked for events
      const missing = begun ? '' : piece({ piece: text, logprobs });
      const usage = includeUsage ? dataLines(JSON.stringify({ ...head, choices: [], usage: usageOf(reply) })) : '';
      return `${missing}${chunk(writer.last(reply))}${usage}${dataLines('[DONE]')}`;
    },
    failed: (error) => `event: error\n${dataLines(JSON.stringify(openAiError(error)))}`,
  };
}
