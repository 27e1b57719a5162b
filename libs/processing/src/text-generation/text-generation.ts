import { AppError, type TextGenerationOptions, type TextGenerationReply, type TokenLogprob } from '@perch/contracts';
import { type CallContext, defineProcessing } from '../contract.ts';
import { DecoderInputs } from './decoder-plan.ts';
import { type Generation, readGeneration } from './generation-request.ts';
import { type GenerationSetup, promptIds, setUpGeneration } from './generation-setup.ts';
import { drawToken, likelihoods } from './sampling.ts';
import { seededRandom } from './seeded-random.ts';
import { type Flowing, TextFlow } from './text-flow.ts';

interface Carry {
  wanted: Generation;
  prompt: Int32Array;
}

/** So many of the prompt's last tokens are decoded ahead of the text: a token's text may depend on the one before it. */
const contextOfText = 8;

/** One text on its way: the tokens so far, and what of their text has gone out. */
class Run {
  text = '';
  drawn = 0;
  finishReason: TextGenerationReply['finishReason'] | undefined;
  readonly logprobs: TokenLogprob[] = [];
  private readonly inputs: DecoderInputs;
  private readonly flow: TextFlow;
  private readonly random: () => number;
  private readonly stops: ReadonlySet<number>;
  private readonly most: number;
  private begun = false;

  constructor(
    private readonly setup: GenerationSetup,
    private readonly wanted: Generation,
    private readonly ctx: CallContext,
    prompt: Int32Array,
  ) {
    const { plan, tokenizer, contextTokens, stopTokenIds, stop } = setup;
    this.most = Math.min(wanted.maxTokens, contextTokens - prompt.length);
    this.inputs = new DecoderInputs(plan, prompt.length + this.most, tokenizer.padId);
    for (const id of prompt) this.inputs.push(id);
    const decoding = tokenizer.decodeStream();
    for (const id of prompt.subarray(-contextOfText)) decoding.push(id);
    this.flow = new TextFlow(decoding, [...stop, ...wanted.stop]);
    this.stops = new Set([...stopTokenIds, ...wanted.stopTokenIds]);
    this.random = seededRandom(wanted.seed ?? Math.floor(Math.random() * Number.MAX_SAFE_INTEGER));
  }

  /** Asks the model for one more token. */
  async step(): Promise<void> {
    const { ctx, wanted } = this;
    if (ctx.signal.aborted && ctx.remainingMs() > 0) throw new AppError('cancelled', 'the client went away');
    const logits = this.logitsOf(await ctx.infer(this.inputs.tensors()));
    const mayStop = this.drawn >= wanted.minTokens;
    const allowed = mayStop ? logits : without(logits, this.stops);
    const id = drawToken(allowed, wanted, this.random);
    if (this.stops.has(id)) return this.end('stop', this.flow.finish(true));
    this.drawn += 1;
    this.inputs.push(id);
    const flowing = this.flow.push(id, this.logprobOf(logits, id), this.drawn >= wanted.minTokens);
    if (flowing.stopped) return this.end('stop', flowing);
    await this.send(flowing);
    if (this.drawn < this.most) return;
    const last = this.flow.finish(this.drawn >= wanted.minTokens);
    await this.end(last.stopped ? 'stop' : 'length', last);
  }

  /** The model may know more tokens than the tokenizer: those that only fill its table are never drawn. */
  private logitsOf(outputs: Parameters<DecoderInputs['lastLogits']>[0]): Float32Array {
    return this.inputs.lastLogits(outputs).subarray(0, this.setup.tokenizer.vocabularySize);
  }

  private async end(reason: TextGenerationReply['finishReason'], flowing: Flowing): Promise<void> {
    this.finishReason = reason;
    await this.send(flowing);
  }

  private async send({ text, logprobs }: Flowing): Promise<void> {
    this.text += text;
    const { ctx, wanted } = this;
    if (wanted.logprobs !== undefined) this.logprobs.push(...logprobs);
    const isLast = this.finishReason !== undefined;
    // an event at least, so that a client that asked for events gets events
    if (!ctx.streams || (text === '' && logprobs.length === 0 && !(isLast && !this.begun))) return;
    this.begun = true;
    await ctx.stream({ piece: text, ...(wanted.logprobs === undefined ? {} : { logprobs }) });
  }

  private logprobOf(logits: Float32Array, id: number): TokenLogprob | undefined {
    if (this.wanted.logprobs === undefined) return undefined;
    const { logprob, top } = likelihoods(logits, id, this.wanted.logprobs);
    const token = (one: number) => this.setup.tokenizer.decode([one], { skipSpecial: false });
    return { token: token(id), id, logprob, top: top.map((one) => ({ token: token(one.id), ...one })) };
  }
}

/** A copy in which these tokens are impossible. */
function without(logits: Float32Array, ids: ReadonlySet<number>): Float32Array {
  const allowed = logits.slice();
  for (const id of ids) if (id < allowed.length) allowed[id] = Number.NEGATIVE_INFINITY;
  return allowed;
}

/** Text that goes on from a prompt, token by token, for decoders without a cache; see `textGenerationOptions`. */
export const textGeneration = defineProcessing<
  unknown,
  GenerationSetup,
  Carry,
  TextGenerationOptions,
  TextGenerationReply
>({
  task: 'text-generation',
  load: setUpGeneration,
  preprocess(body, setup) {
    const wanted = readGeneration(body, setup.options);
    return { inputs: {}, carry: { wanted, prompt: promptIds(wanted, setup) } };
  },
  async process(_inputs, { loaded, carry: { wanted, prompt } }, ctx) {
    const run = new Run(loaded, wanted, ctx, prompt);
    while (run.finishReason === undefined) await run.step();
    ctx.count('prompt_tokens', prompt.length);
    ctx.count('completion_tokens', run.drawn);
    return {
      text: run.text,
      finishReason: run.finishReason,
      usage: { promptTokens: prompt.length, completionTokens: run.drawn },
      ...(wanted.logprobs === undefined ? {} : { logprobs: run.logprobs }),
    };
  },
});
