import { AppError, type TextGenerationOptions } from '@perch/contracts';
import type { LoadSetup, ModuleFiles, TextTokenizer } from '../contract.ts';
import { type ChatPrompt, chatPrompt, looksLike } from './chat-template.ts';
import { type DecoderPlan, planDecoder } from './decoder-plan.ts';
import type { Generation } from './generation-request.ts';

/** All that requests of one version share. */
export interface GenerationSetup {
  options: TextGenerationOptions;
  plan: DecoderPlan;
  tokenizer: TextTokenizer;
  chat: ChatPrompt | undefined;
  /** Why there is none, for who sends messages. */
  noChat: string;
  contextTokens: number;
  stopTokenIds: ReadonlySet<number>;
  /** Of the options and the chat template. */
  stop: readonly string[];
}

/** A prompt never has more: the tokenizer's own limit. */
const mostPromptTokens = 131_072;
const usualContextTokens = 2_048;

export async function setUpGeneration(setup: LoadSetup<TextGenerationOptions>): Promise<GenerationSetup> {
  const { options, files, signature } = setup;
  const plan = planDecoder(signature, options.output);
  const tokenizer = await files.tokenizer(options.tokenizer);
  const config = await readConfig(files, 'config.json');
  const chat = options.chatTemplate === undefined ? undefined : chatPrompt(options.chatTemplate);
  const ends = options.stopTokens ?? (await ownEnds(files, config));
  const stopTokenIds = new Set(ends.map((end) => idOf(tokenizer, end)));
  const stop = [...options.stop];
  for (const text of chat?.stop ?? []) {
    const id = tokenizer.tokenId(text);
    if (id === undefined) stop.push(text);
    else stopTokenIds.add(id);
  }
  const fromConfig = [config['max_position_embeddings'], config['n_positions'], config['n_ctx']].find(
    (size): size is number => Number.isInteger(size) && (size as number) >= 2,
  );
  const contextTokens = options.contextTokens ?? fromConfig ?? usualContextTokens;
  return {
    options,
    plan,
    tokenizer,
    chat,
    noChat: chat ? '' : await whyNoChat(files),
    contextTokens: plan.fixedTokens > 0 ? Math.min(plan.fixedTokens, contextTokens) : contextTokens,
    stopTokenIds,
    stop,
  };
}

async function readConfig(files: ModuleFiles, path: string): Promise<Record<string, unknown>> {
  if (!files.has(path)) return {};
  const value = await files.json(path);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

async function whyNoChat(files: ModuleFiles): Promise<string> {
  const jinja = (await readConfig(files, 'tokenizer_config.json'))['chat_template'];
  const likely = typeof jinja === 'string' ? looksLike(jinja) : undefined;
  const hint = likely ? `; the model's own looks like ${likely}` : '';
  return `this endpoint takes "prompt": its processing has no option chatTemplate${hint}`;
}

async function ownEnds(files: ModuleFiles, config: Record<string, unknown>): Promise<number[]> {
  const ends = (await readConfig(files, 'generation_config.json'))['eos_token_id'] ?? config['eos_token_id'];
  return [ends].flat().filter((id): id is number => Number.isInteger(id));
}

function idOf(tokenizer: TextTokenizer, end: string | number): number {
  const id = typeof end === 'number' ? end : tokenizer.tokenId(end);
  if (id === undefined) throw new AppError('invalid', `options.stopTokens: the tokenizer has no token "${end}"`);
  return id;
}

/** Ids of a request's prompt, with room for at least one token behind them. Throws `invalid`. */
export function promptIds({ prompt: { prompt, messages }, maxTokens }: Generation, setup: GenerationSetup): Int32Array {
  const { options, tokenizer, chat, contextTokens } = setup;
  if (messages && !chat) throw new AppError('invalid', setup.noChat);
  const text = messages ? chat!.write(messages) : prompt!;
  const specialTokens = options.specialTokens && !(messages && chat!.hasMarkers);
  const ids = tokenizer.encode(text, { maxTokens: mostPromptTokens, overlong: 'refuse', specialTokens });
  if (ids.length === 0) throw new AppError('invalid', 'the prompt is empty, wanted at least one token');
  if (ids.length < contextTokens) return ids;
  if (options.overlong === 'truncate') return ids.slice(-Math.max(1, contextTokens - maxTokens));
  throw new AppError('invalid', `the prompt has ${ids.length} tokens, and there is room for ${contextTokens - 1}`);
}
