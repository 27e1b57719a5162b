import type { Isolation } from '@perch/contracts';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IsolationStand } from './isolation-stand.ts';

/** Says the prompt word by word; `!` breaks off, `?` answers something else than a text. */
const words = `
  async process(body, _state, ctx) {
    let text = '';
    for (const word of (body.prompt ?? body.messages.at(-1).content).split(' ')) {
      if (word === '!') throw new Error('had enough');
      await ctx.stream({ piece: word + ' ' });
      text += word + ' ';
    }
    if (text.startsWith('?')) return { something: 'else' };
    return { text, finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 2 } };
  },`;
const accept = { accept: 'text/event-stream' };
const eventsOf = (text: string) => text.split('\n\n').filter(Boolean);

/** Modules of users stream as built-ins do, wherever they run. */
describe('modules that stream', () => {
  const isolations: readonly Isolation[] = ['inline', 'worker', 'process'];
  let stand: IsolationStand;
  let client: OpenAI;
  beforeAll(async () => {
    stand = await IsolationStand.start();
    const module = stand.module('words', words);
    for (const isolation of isolations)
      stand.set(isolation, { ...module, facts: { ...module.facts, task: 'text-generation' } }, isolation);
    await stand.publish();
    await Promise.all(isolations.map((isolation) => stand.until(isolation, { prompt: 'warm' })));
    client = new OpenAI({ apiKey: 'any', baseURL: `${stand.stand.router.address}/v1`, maxRetries: 0 });
  });
  afterAll(() => stand?.stop());

  it.each(isolations)('send their events and then their reply, or the reply alone: %s', async (endpoint) => {
    const { text } = await stand.ask(endpoint, { prompt: 'one two' }, accept);
    const reply = { text: 'one two ', finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 2 } };
    const wanted = [{ piece: 'one ' }, { piece: 'two ' }, reply].map((event) => `data: ${JSON.stringify(event)}`);
    expect(eventsOf(text)).toEqual(wanted);
    expect(eventsOf((await stand.ask(endpoint, { prompt: 'one two', stream: true })).text)).toEqual(wanted);
    expect((await stand.ask(endpoint, { prompt: 'one two' })).json).toEqual(reply);
  });

  it.each(isolations)(
    'end with an error where they throw after an event, with a status before: %s',
    async (endpoint) => {
      const late = eventsOf((await stand.ask(endpoint, { prompt: 'one !' }, accept)).text);
      expect(late[0]).toBe('data: {"piece":"one "}');
      expect(late[1]).toMatch(/^event: error\ndata: \{"error":\{"code":"/);
      expect(late).toHaveLength(2);
      expect((await stand.ask(endpoint, { prompt: '! one' }, accept)).status).toBe(500);
    },
  );

  it.each(isolations)('are models of OpenAI’s protocol by the task that they declare: %s', async (model) => {
    const wanted = { model, messages: [{ role: 'user' as const, content: 'three four' }] };
    expect((await client.chat.completions.create(wanted)).choices[0]!.message.content).toBe('three four ');
    expect(await client.chat.completions.stream(wanted).finalContent()).toBe('three four ');
    const broken = client.completions.create({ model, prompt: '?' });
    await expect(broken).rejects.toMatchObject({ status: 500, message: expect.stringContaining('answered no text') });
    const cut = await client.completions.create({ model, prompt: 'one !', stream: true });
    const read = async () => {
      for await (const _ of cut);
    };
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
  });

  it.each(isolations)('embed texts for OpenAI’s protocol, and say how many tokens that took: %s', async (isolation) => {
    const hooks = `process(body) {
      const embeddings = body.input.map((text) => [text.length, 1]);
      return { embeddings, usage: { promptTokens: 7 } };
    },`;
    const module = stand.module('lengths', hooks);
    stand.set(`lengths/${isolation}`, { ...module, facts: { ...module.facts, task: 'text-embedding' } }, isolation);
    await stand.publish();
    await stand.until(`lengths/${isolation}`, { input: ['a'] });
    const { data, usage } = await client.embeddings.create({ model: `lengths/${isolation}`, input: ['abc', 'x'] });
    expect(data.map(({ embedding }) => embedding)).toEqual([[3, 1], [1, 1]]); // biome-ignore format: one row
    expect(usage).toEqual({ prompt_tokens: 7, total_tokens: 7 });
  });

  it('make a worker’s module wait for a client that does not read', async () => {
    const megabyte = 1_048_576;
    const module = stand.module(
      'flood',
      `
      async process(body, _state, ctx) {
        for (let i = 0; i < 24; i++) { await ctx.stream('x'.repeat(${megabyte})); ctx.log('info', 'sent', { i }); }
        return 'end';
      },`,
    );
    stand.set('flood', module, 'worker', { timeoutMs: 30_000 });
    await stand.publish();
    const sent = async () => ((await stand.stand.router.tail(200)).match(/"message":"sent"/g) ?? []).length;
    const response = await fetch(`${stand.stand.router.address}/serve/flood`, {
      method: 'POST',
      body: '{}',
      headers: accept,
    });
    let last = -1;
    for (let now = await sent(); now !== last || now === 0; now = await sent()) {
      last = now;
      await new Promise((done) => setTimeout(done, 100));
    }
    expect(last).toBeLessThan(24);
    const text = await response.text();
    expect(text).toHaveLength(24 * (megabyte + 'data: ""\n\n'.length) + 'data: "end"\n\n'.length);
  });

  it('count a client that does not read in time as one that left, not against the version', async () => {
    const module = stand.module(
      'endless',
      `async process(body, _state, ctx) { for (;;) await ctx.stream('x'.repeat(1_000_000)); },`,
    );
    stand.set('endless', module, 'inline', { timeoutMs: 1_000 });
    await stand.publish();
    const url = `${stand.stand.router.address}/serve/endless`;
    const response = await fetch(url, { method: 'POST', body: '{}', headers: accept });
    const counted = /perch_router_requests_total\{endpoint="endless",[^}]*outcome="(\w+)"\} 1/;
    let outcome: string | undefined;
    while (!outcome) outcome = counted.exec((await stand.stand.send('/metrics')).text)?.[1];
    expect(outcome).toBe('cancelled');
    await response.body!.cancel();
  });
});
