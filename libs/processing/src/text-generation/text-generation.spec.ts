import type {
  DataType,
  Signature,
  TensorSpec,
  Tensors,
  TextGenerationEvent,
  TextGenerationReply,
} from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import {
  afterHash,
  type BigramShape,
  bigramAnswer,
  byteTokenizer,
  endId,
  modelVocabulary,
} from '../../../../test/support/generation.ts';
import { filesOf, quietCall } from '../call.fake.ts';
import type { CallContext } from '../contract.ts';
import { loadProcessing } from '../loaded-processing.ts';

const input = (name: string, shape = [-1, -1], datatype: DataType = 'INT64'): TensorSpec => ({ name, datatype, shape });
const plain: Signature = {
  inputs: [input('input_ids')],
  outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, -1, modelVocabulary] }],
};

interface Given {
  options?: Record<string, unknown>;
  signature?: Signature;
  shape?: BigramShape;
  files?: Record<string, string>;
  ctx?: Partial<CallContext>;
}

function load({ options = {}, signature = plain, files = {} }: Given) {
  const source = filesOf({ 'tokenizer.json': byteTokenizer(), ...files });
  return loadProcessing({ builtin: 'text-generation', options, files: source, signature, maxBatchSize: 8 });
}

async function generate(body: unknown, given: Given = {}) {
  const asked: Tensors[] = [];
  const events: TextGenerationEvent[] = [];
  const ctx: CallContext = {
    ...quietCall,
    infer: async (inputs) => {
      asked.push(inputs);
      return bigramAnswer(inputs, given.shape);
    },
    stream: async (event) => void events.push(event as TextGenerationEvent),
    ...given.ctx,
  };
  const processing = await load(given);
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const { inputs, carry } = await processing.preprocess(bytes, 'application/json', ctx);
  const outputs = await processing.process!(inputs, carry, ctx);
  const reply = (await processing.postprocess(outputs, carry, ctx)) as TextGenerationReply;
  return { ...reply, asked, events };
}

const greedy = { temperature: 0, maxTokens: 5 };

describe('text generation', () => {
  it('goes on from the prompt, the most likely token each time', async () => {
    const { text, finishReason, usage, asked } = await generate({ prompt: 'xyz', ...greedy });
    expect(text).toBe(' abcd');
    expect(finishReason).toBe('length');
    expect(usage).toEqual({ promptTokens: 3, completionTokens: 5 });
    expect(asked.map(({ input_ids }) => input_ids!.shape)).toEqual([3, 4, 5, 6, 7].map((tokens) => [1, tokens]));
  });

  it.each<[string, Signature, BigramShape]>([
    [
      'FP16 [B, S, V]',
      { ...plain, outputs: [{ name: 'logits', datatype: 'FP16', shape: [-1, -1, modelVocabulary] }] },
      { logits: 'FP16', steps: 'all' },
    ],
    [
      'FP32 [B, V]',
      { ...plain, outputs: [{ name: 'scores', datatype: 'FP32', shape: [-1, modelVocabulary] }] },
      { logits: 'FP32', steps: 'last' },
    ],
    [
      'no batch, INT32',
      {
        inputs: [input('input_ids', [-1], 'INT32')],
        outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, modelVocabulary] }],
      },
      { logits: 'FP32', steps: 'all' },
    ],
    [
      '16 tokens exactly, with mask and positions',
      {
        ...plain,
        inputs: [
          input('input_ids', [1, 16]),
          input('attention_mask', [1, 16], 'INT32'),
          input('position_ids', [1, 16]),
        ],
      },
      { logits: 'FP32', steps: 'all' },
    ],
  ])('takes models as they are: %s', async (_, signature, shape) => {
    // biome-ignore format: one row a model
    const named = signature.outputs[0]!.name;
    const rename = (answer: Tensors): Tensors => ({ [named]: answer['logits']! });
    const asked: Tensors[] = [];
    const infer = async (inputs: Tensors) => {
      asked.push(inputs);
      return rename(bigramAnswer(inputs, shape));
    };
    const { text } = await generate({ prompt: 'xyz', ...greedy }, { signature, ctx: { infer } });
    expect(text).toBe(' abcd');
    for (const inputs of asked) expect(Object.keys(inputs)).toEqual(signature.inputs.map(({ name }) => name));
  });

  it('ends at a stop token, which is not part of the text', async () => {
    const config = { 'generation_config.json': JSON.stringify({ eos_token_id: [endId] }) };
    const { text, finishReason, usage } = await generate({ prompt: '!', temperature: 0 }, { files: config });
    expect({ text, finishReason }).toEqual({ text: '😀?', finishReason: 'stop' });
    expect(usage.completionTokens).toBe(5);
    const own = await generate({ prompt: 'a', temperature: 0, stopTokenIds: ['d'.charCodeAt(0)] });
    expect(own.text).toBe('bc');
  });

  it('draws no stop token before minTokens, and goes on with what else is likely', async () => {
    const wanted = { prompt: 'a', temperature: 0, minTokens: 4, maxTokens: 6, stopTokenIds: ['d'.charCodeAt(0)] };
    const { text } = await generate(wanted);
    expect(text).toHaveLength(6);
    expect(text.slice(0, 2)).toBe('bc');
    expect(text[2]).not.toBe('d');
  });

  it('ends at a stop string across tokens, and sends nothing of it', async () => {
    const ctx = { streams: true };
    const { text, finishReason, events, usage } = await generate(
      { prompt: 'a', ...greedy, maxTokens: 20, stop: ['xx', 'fgh'] },
      { ctx },
    );
    expect({ text, finishReason }).toEqual({ text: 'bcde', finishReason: 'stop' });
    expect(events.map(({ piece }) => piece).join('')).toBe('bcde');
    expect(usage.completionTokens).toBe(7);
    const later = await generate({ prompt: 'a', ...greedy, maxTokens: 12, minTokens: 10, stop: 'fgh' });
    expect(later.text).toBe('bcdefghijklm');
  });

  it('streams whole characters, at least one event, and the reply says the same', async () => {
    const options = { stopTokens: ['<|end|>'] };
    const { text, events } = await generate({ prompt: '!', temperature: 0 }, { options, ctx: { streams: true } });
    expect(events.map(({ piece }) => piece)).toEqual(['😀', '?']);
    expect(text).toBe('😀?');
    const nothing = await generate({ prompt: '?', temperature: 0 }, { options, ctx: { streams: true } });
    expect(nothing.events).toEqual([{ piece: '' }]);
    const cut = await generate({ prompt: '!', temperature: 0, maxTokens: 2 });
    expect(cut.text).toBe('\ufffd');
  });

  it('gives each token’s log-probability, beside the most likely ones', async () => {
    const { logprobs, events } = await generate(
      { prompt: '#', temperature: 0, maxTokens: 3, logprobs: 2 },
      { ctx: { streams: true } },
    );
    expect(logprobs!.map(({ token }) => token)).toEqual(['1', '#', '1']);
    expect(Math.exp(logprobs![0]!.logprob)).toBeCloseTo(0.5, 2);
    expect(logprobs![0]!.top.map(({ token }) => token)).toEqual(['1', '2']);
    expect(events.flatMap((event) => event.logprobs)).toEqual(logprobs);
  });

  it('leaves out the log-probabilities of what a stop string took back', async () => {
    const { text, logprobs } = await generate({ prompt: 'a', ...greedy, stop: 'de', logprobs: 0 });
    expect(text).toBe('bc');
    expect(logprobs!.map(({ token }) => token).join('')).toBe('bc');
  });

  it('gives the same text for a seed, and the distribution over seeds', async () => {
    const drawn = async (seed: number) => (await generate({ prompt: '#', maxTokens: 1, seed })).text;
    const counts: Record<string, number> = {};
    for (let seed = 0; seed < 1_000; seed++) {
      const text = await drawn(seed);
      counts[text] = (counts[text] ?? 0) + 1;
    }
    const square = Object.entries(afterHash).reduce(
      (sum, [digit, chance]) => sum + ((counts[digit] ?? 0) - 1_000 * chance) ** 2 / (1_000 * chance),
      0,
    );
    expect(square).toBeLessThan(16.27); // 3 degrees of freedom, 0.1 %
    const long = { prompt: '#', maxTokens: 40, seed: 5 };
    expect((await generate(long)).text).toBe((await generate(long)).text);
  });

  it('never draws an id that only fills the model’s table', async () => {
    expect((await generate({ prompt: '~', ...greedy, maxTokens: 1 })).text).toBe('a');
  });

  it('writes messages by the chat template', async () => {
    const options = { chatTemplate: { user: '<|user|>{content}', assistant: '{content}', reply: ':' }, stop: ['d'] };
    const messages = [{ role: 'user', content: 'hi' }];
    const { text, usage } = await generate({ messages, temperature: 0 }, { options });
    expect(text).toBe('abc');
    expect(usage.promptTokens).toBe(4);
    const hidden = [{ role: 'user', content: 'x<|user|>y' }];
    await expect(generate({ messages: hidden }, { options })).rejects.toThrow('messages[0].content holds "<|user|>"');
    const system = [{ role: 'system', content: 'x' }];
    await expect(generate({ messages: system }, { options })).rejects.toThrow('no role "system"');
    await expect(generate({ messages }, {})).rejects.toThrow('no option chatTemplate');
    const files = { 'tokenizer_config.json': JSON.stringify({ chat_template: "{{ '<|im_start|>' + role }}" }) };
    await expect(generate({ messages }, { files })).rejects.toThrow('looks like chatml');
  });

  it('ends when the context is full, and refuses or cuts a prompt that leaves no room', async () => {
    const options = { contextTokens: 8 };
    const full = await generate({ prompt: 'abcdef', temperature: 0 }, { options });
    expect(full).toMatchObject({ text: 'gh', finishReason: 'length' });
    await expect(generate({ prompt: 'abcdefgh' }, { options })).rejects.toThrow('8 tokens, and there is room for 7');
    const cut = await generate({ prompt: 'abcdefghij', ...greedy }, { options: { ...options, overlong: 'truncate' } });
    expect(cut).toMatchObject({ text: 'klmno', usage: { promptTokens: 3 } });
  });

  it('ends with the client', async () => {
    const gone = new AbortController();
    let steps = 0;
    const infer = async (inputs: Tensors) => {
      steps += 1;
      if (steps === 3) gone.abort();
      return bigramAnswer(inputs);
    };
    const running = generate({ prompt: 'a', maxTokens: 100 }, { ctx: { infer, signal: gone.signal } });
    await expect(running).rejects.toMatchObject({ code: 'cancelled' });
    expect(steps).toBe(3);
  });

  it.each([
    [{}, 'wants either prompt or messages'],
    [{ prompt: 'a', messages: [{ role: 'user', content: 'b' }] }, 'wants either prompt or messages'],
    [{ prompt: 7 }, 'prompt'],
    [{ prompt: '' }, 'the prompt is empty'],
    [{ prompt: 'a', topP: 0 }, 'topP'],
    [{ prompt: 'a', temperature: -1 }, 'temperature'],
    [{ prompt: 'a', maxTokens: 5_000 }, 'gives 4096 at most'],
    [{ prompt: 'a', maxTokens: 5, minTokens: 6 }, 'more than maxTokens'],
    [{ prompt: 'a', beams: 3 }, 'beams'],
    ['[1]', 'the body is a list'],
    ['{"prompt": ', 'JSON'],
  ])('refuses %j', async (body, words) => {
    await expect(generate(body)).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining(words) });
  });

  it.each<[string, Signature, Record<string, unknown>, string]>([
    ['no ids', { ...plain, inputs: [input('tokens')] }, {}, 'no input "input_ids"'],
    [
      'a cache',
      { ...plain, inputs: [input('input_ids'), input('past_key_values.0.key')] },
      {},
      'a cache of earlier steps',
    ],
    ['another input', { ...plain, inputs: [input('input_ids'), input('pixels')] }, {}, 'wants input "pixels"'],
    [
      'two outputs',
      { ...plain, outputs: ['a', 'b'].map((name) => ({ ...plain.outputs[0]!, name })) },
      {},
      'name one of the outputs a, b',
    ],
    [
      'whole logits',
      { ...plain, outputs: [{ ...plain.outputs[0]!, datatype: 'INT64' }] },
      { output: 'logits' },
      'wanted FP32, FP16 or BF16',
    ],
    ['a stop token that is none', plain, { stopTokens: ['<nope>'] }, 'no token "<nope>"'],
  ])('refuses a model with %s', async (_, signature, options, words) => {
    // biome-ignore format: one row a model
    await expect(load({ signature, options })).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining(words) });
  });

  it('blames the model for logits of another shape', async () => {
    const infer = async () =>
      bigramAnswer({ input_ids: { datatype: 'INT64', shape: [1, 9], bytes: new Uint8Array(72) } });
    await expect(generate({ prompt: 'ab' }, { ctx: { infer } })).rejects.toMatchObject({ code: 'upstream' });
  });
});
