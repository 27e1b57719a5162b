import type OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingReason } from '../support/real-parts.ts';
import { startTriton } from '../support/real-triton.ts';
import { GenerationStand } from './generation-stand.ts';

/** The same as on the embedded engine, in short: what a real Triton answers token by token. */
describe.skipIf(missingReason('triton'))('the OpenAI paths in front of a real Triton', () => {
  let stand: GenerationStand;
  let client: OpenAI;
  beforeAll(async () => {
    stand = await GenerationStand.start(await startTriton());
    client = stand.client();
  });
  afterAll(() => stand?.stop());

  it('generates the known text, at once and in events', async () => {
    const wanted = { model: 'text/decoder', temperature: 0, messages: [{ role: 'user' as const, content: 'xyz' }] };
    const whole = await client.chat.completions.create({ ...wanted, max_tokens: 28 });
    const text = ' abcdefghijklmnopqrstuvwxyz a';
    expect(whole.choices[0]).toMatchObject({ message: { content: text.slice(0, 28) }, finish_reason: 'length' });
    expect(await client.chat.completions.stream({ ...wanted, max_tokens: 28 }).finalContent()).toBe(text.slice(0, 28));
    const ended = await client.completions.create({ model: 'text/decoder', prompt: '!', temperature: 0, logprobs: 1 });
    expect(ended.choices[0]).toMatchObject({ text: '😀?', finish_reason: 'stop' });
  });

  it('serves streams side by side, each with a text of its own', async () => {
    const one = async (from: string) => {
      let text = '';
      const stream = await client.completions.create({
        model: 'text/decoder', prompt: from, temperature: 0, max_tokens: 12, stream: true,
      }); // biome-ignore format: one row reads better
      for await (const { choices } of stream) text += choices[0]!.text;
      return text;
    };
    const letters = 'abcdefghijklmnop'.split('');
    const alphabet = 'abcdefghijklmnopqrstuvwxyz abc';
    expect(await Promise.all(letters.map(one))).toEqual(letters.map((_, i) => alphabet.slice(i + 1, i + 13)));
  });

  it('embeds', async () => {
    const { data } = await client.embeddings.create({ model: 'embed/bytes', input: 'abc' });
    expect(data[0]!.embedding).toEqual([98, 1, 0]);
  });
});
