import { z } from 'zod';
import { textGenerationRequest } from './tasks.schema.ts';

export const chatTemplateNames = ['plain', 'chatml', 'llama-3', 'gemma', 'zephyr', 'phi-3'] as const;

const turn = z.string().max(4_096);
const turnWithContent = turn.refine(
  (text) => text.split('{content}').length === 2,
  'wants {content} exactly once, where the message stands',
);

/** One text a role, with `{content}` where the message stands; all of them in a row are the prompt. */
export const customChatTemplate = z.strictObject({
  /** Before the first message. */
  start: turn.default(''),
  system: turnWithContent.optional(),
  user: turnWithContent,
  assistant: turnWithContent,
  tool: turnWithContent.optional(),
  /** Behind the last message: opens the model's own turn. */
  reply: turn,
});
export type CustomChatTemplate = z.infer<typeof customChatTemplate>;

const { shape } = textGenerationRequest;

/** What a request leaves out. */
const generationDefaults = z.strictObject({
  maxTokens: shape.maxTokens.unwrap().default(256),
  minTokens: shape.minTokens.unwrap().default(0),
  temperature: shape.temperature.unwrap().default(1),
  topK: shape.topK.unwrap().default(0),
  topP: shape.topP.unwrap().default(1),
});

export const textGenerationOptions = z
  .strictObject({
    /** Tokens of prompt and reply together; left out: what config.json of the version says, else 2048. */
    contextTokens: z.number().int().min(2).max(131_072).optional(),
    /** What happens to a prompt that leaves no room for a token: `truncate` keeps its end. */
    overlong: z.enum(['refuse', 'truncate']).default('refuse'),
    /** The most that a request may ask for. */
    mostTokens: z.number().int().min(1).max(131_072).default(4_096),
    defaults: generationDefaults.prefault({}),
    /**
     * Tokens that end a text. Left out: `eos_token_id` of generation_config.json or config.json of the version, where it
     * has one.
     */
    stopTokens: z
      .array(z.union([z.string().min(1).max(256), z.number().int().min(0)]))
      .max(64)
      .optional(),
    /** Stop strings of every request, beside its own. */
    stop: z.array(z.string().min(1).max(256)).max(16).default([]),
    /** How messages become a prompt; left out: only `prompt` is taken. */
    chatTemplate: z.union([z.enum(chatTemplateNames), customChatTemplate]).optional(),
    /** Whether the tokenizer puts its own tokens (`<s>`) around the prompt; a chat template writes its own. */
    specialTokens: z.boolean().default(true),
    /** File of the version. */
    tokenizer: z.string().min(1).max(512).default('tokenizer.json'),
    /** The model's output to read; left out: `logits`, else the only floating-point one. */
    output: z.string().min(1).max(256).optional(),
  })
  .meta({ id: 'TextGenerationOptions' });
export type TextGenerationOptions = z.output<typeof textGenerationOptions>;
