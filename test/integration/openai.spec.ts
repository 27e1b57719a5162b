import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEngine } from '../support/real-triton.ts';
import { GenerationStand } from './generation-stand.ts';

const model = 'text/decoder';
const greedy = { model, temperature: 0, max_tokens: 5 };
const user = (content: string): OpenAI.ChatCompletionMessageParam[] => [{ role: 'user', content }];

/** OpenAI's own client against the router in front of the embedded engine. */
describe('the OpenAI paths', () => {
  let stand: GenerationStand;
  let client: OpenAI;
  const post = async (path: string, body: unknown, headers: Record<string, string> = { authorization: 'Bearer all' }) =>
    stand.stand.post(path, body, headers);

  beforeAll(async () => {
    stand = await GenerationStand.start(await startEngine());
    client = stand.client();
  });
  afterAll(() => stand?.stop());

  describe('/v1/chat/completions', () => {
    it('answers messages', async () => {
      const { data, response } = await client.chat.completions
        .create({ ...greedy, messages: user('xyz') })
        .withResponse();
      expect(data).toMatchObject({
        id: expect.stringMatching(/^chatcmpl-/),
        object: 'chat.completion',
        model,
        choices: [
          { index: 0, message: { role: 'assistant', content: ' abcd' }, finish_reason: 'length', logprobs: null },
        ],
        usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 },
      });
      expect(response.headers.get('x-perch-version')).toBe('2');
      expect(response.headers.get('x-request-id')).toMatch(/./);
    });

    it('takes parts of text, the developer role, and messages of several roles', async () => {
      const { choices, usage } = await client.chat.completions.create({
        ...greedy,
        messages: [
          { role: 'developer', content: 'a' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'b' },
              { type: 'text', text: 'c' },
            ],
          },
          { role: 'assistant', content: 'd' },
        ],
      });
      expect(choices[0]!.message.content).toBe('efghi');
      expect(usage!.prompt_tokens).toBe(4);
    });

    it('streams pieces, whole characters, the finish reason and the usage', async () => {
      const stream = await client.chat.completions.create({
        ...greedy, messages: user('!'), stream: true, stream_options: { include_usage: true },
      }); // biome-ignore format: one row reads better
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      expect(chunks[0]!.choices[0]!.delta).toEqual({ role: 'assistant', content: '' });
      expect(chunks.map(({ choices }) => choices[0]?.delta.content).filter(Boolean)).toEqual(['😀', '?']);
      expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe('length');
      expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 5 } });
      expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    });

    it('gives the client’s own stream helper the same text as without a stream', async () => {
      const wanted = { model, messages: user('#'), seed: 3, max_tokens: 30 };
      const helped = await client.chat.completions.stream({ ...wanted }).finalContent();
      const { choices } = await client.chat.completions.create(wanted);
      expect(helped).toBe(choices[0]!.message.content);
      expect(helped).toMatch(/^([1-4]#){15}$/);
    });

    it('takes max_completion_tokens, stop, seed, top_p and log-probabilities', async () => {
      const { choices } = await client.chat.completions.create({
        model, messages: user('#'), max_completion_tokens: 3, top_p: 0.4, stop: ['zz'], logprobs: true, top_logprobs: 2, user: 'u-1',
      }); // biome-ignore format: one row reads better
      expect(choices[0]!.message.content).toBe('1#1');
      const [first] = choices[0]!.logprobs!.content!;
      expect(first).toMatchObject({ token: '1', bytes: [49], top_logprobs: [{ token: '1' }, { token: '2' }] });
      expect(Math.exp(first!.logprob)).toBeCloseTo(0.5, 2);
      const stopped = await client.chat.completions.create({ ...greedy, messages: user('a'), stop: 'de' });
      expect(stopped.choices[0]).toMatchObject({ message: { content: 'bc' }, finish_reason: 'stop' });
    });

    it.each([
      ['n', { n: 2 }, '"n" is not supported'],
      ['tools', { tools: [{ type: 'function', function: { name: 'f' } }] }, '"tools" is not supported'],
      ['a penalty', { frequency_penalty: 1 }, '"frequency_penalty" is not supported'],
      ['JSON mode', { response_format: { type: 'json_object' } }, '"response_format" is not supported'],
      ['what nobody knows', { beams: 4 }, 'unknown parameter "beams"'],
      ['a temperature of another type', { temperature: 'hot' }, 'temperature'],
      [
        'an image',
        { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] },
        '"image_url", wanted text',
      ],
      ['another task’s model', { model: 'embed/bytes' }, 'is of task text-embedding, wanted text-generation'],
    ])('refuses %s by name', async (_, fields, words) => {
      const asked = client.chat.completions.create({ ...greedy, messages: user('a'), ...fields } as never);
      await expect(asked).rejects.toMatchObject({
        status: 400,
        type: 'invalid_request_error',
        message: expect.stringContaining(words),
      });
    });

    it('takes with a neutral value what it does not do', async () => {
      const neutral = {
        n: 1,
        presence_penalty: 0,
        logit_bias: {},
        response_format: { type: 'text' },
        tools: [],
        seed: null,
        service_tier: 'auto',
        metadata: {},
      };
      const answer = await post('/v1/chat/completions', { ...greedy, messages: user('a'), ...neutral });
      expect([answer.status, answer.json.choices[0].message.content]).toEqual([200, 'bcdef']);
    });
  });

  describe('/v1/completions', () => {
    it('goes on from a prompt, at once and in events', async () => {
      const whole = await client.completions.create({ ...greedy, prompt: ['xyz'], logprobs: 1 });
      expect(whole).toMatchObject({ object: 'text_completion', choices: [{ text: ' abcd', finish_reason: 'length' }] });
      expect(whole.choices[0]!.logprobs).toMatchObject({
        tokens: [' ', 'a', 'b', 'c', 'd'],
        text_offset: [0, 1, 2, 3, 4],
      });
      let text = '';
      const offsets: number[] = [];
      for await (const { choices } of await client.completions.create({
        ...greedy,
        prompt: 'xyz',
        logprobs: 1,
        stream: true,
      })) {
        text += choices[0]!.text;
        offsets.push(...(choices[0]!.logprobs?.text_offset ?? []));
      }
      expect([text, offsets]).toEqual([' abcd', [0, 1, 2, 3, 4]]);
    });

    it.each([
      [{ prompt: ['a', 'b'] }, '2 texts, wanted one'],
      [{ prompt: [1, 2] }, 'ids of tokens'],
      [{ prompt: 'a', echo: true }, '"echo" is not supported'],
      [{ prompt: 'a', best_of: 3 }, '"best_of" is not supported'],
      [{ prompt: '' }, 'the prompt is empty'],
      [{ prompt: 'a', max_tokens: 10_000 }, '4096 at most'],
    ])('refuses %j', async (fields, words) => {
      const { status, json } = await post('/v1/completions', { ...greedy, ...fields });
      expect([status, json.error.message]).toEqual([400, expect.stringContaining(words)]);
    });
  });

  describe('/v1/embeddings', () => {
    it('answers floats and base64, which the client asks for by itself', async () => {
      const wanted = [[98, 1, 0], [120, 1, 0]]; // biome-ignore format: one row
      const { data, usage } = await client.embeddings.create({ model: 'embed/bytes', input: ['abc', 'x'] });
      expect(data.map(({ embedding }) => embedding)).toEqual(wanted);
      expect(usage).toEqual({ prompt_tokens: 4, total_tokens: 4 });
      const floats = await post('/v1/embeddings', {
        model: 'embed/bytes',
        input: ['abc', 'x'],
        encoding_format: 'float',
      });
      expect(floats.json.data).toEqual(wanted.map((embedding, index) => ({ object: 'embedding', index, embedding })));
      const one = await client.embeddings.create({ model: 'embed/bytes@1', input: 'abc', encoding_format: 'base64' });
      expect(one.data[0]!.embedding).toBe(Buffer.from(Float32Array.of(98, 1, 0).buffer).toString('base64'));
    });

    it.each([
      [{ input: [1, 2, 3] }, 'ids of tokens'],
      [{ input: [] }, 'something else'],
      [{ input: 'a', dimensions: 2 }, 'unknown parameter "dimensions"'],
      [{ input: 'a', encoding_format: 'hex' }, 'encoding_format'],
      [{ input: 'a', model: 'text/decoder' }, 'is of task text-generation'],
    ])('refuses %j', async (fields, words) => {
      const { status, json } = await post('/v1/embeddings', { model: 'embed/bytes', ...fields });
      expect([status, json.error.message]).toEqual([400, expect.stringContaining(words)]);
    });
  });

  describe('/v1/models, and who may use what', () => {
    it('shows what the key may use, with its task', async () => {
      const names = async (one: OpenAI) => (await one.models.list()).data.map(({ id }) => id).sort();
      expect(await names(client)).toEqual(['embed/bytes', 'open', 'small', 'text/decoder']);
      expect(await names(stand.client('embeds'))).toEqual(['embed/bytes', 'open', 'small']);
      expect(await client.models.retrieve('text/decoder')).toMatchObject({
        id: 'text/decoder',
        task: 'text-generation',
        versions: [1, 2],
      });
      await expect(stand.client('embeds').models.retrieve('text/decoder')).rejects.toMatchObject({
        status: 404,
        code: 'model_not_found',
      });
    });

    it('tells an unknown key, one that may not, and an unknown model apart', async () => {
      const ask = (key: string, name = model) =>
        stand.client(key).completions.create({ ...greedy, model: name, prompt: 'a' });
      await expect(ask('nope')).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
      await expect(ask('embeds')).rejects.toBeInstanceOf(OpenAI.PermissionDeniedError);
      await expect(ask('all', 'nobody')).rejects.toBeInstanceOf(OpenAI.NotFoundError);
      const { status } = await post('/v1/completions', { model: 'open', prompt: 'a', max_tokens: 1 }, {});
      expect(status).toBe(200);
      expect((await post('/v1/completions', { ...greedy, prompt: 'a' }, {})).status).toBe(401);
    });

    it('pins a version by name and by header', async () => {
      const versionOf = async (name: string, headers = {}) => {
        const { response } = await client.completions
          .create({ ...greedy, model: name, prompt: 'a' }, { headers })
          .withResponse();
        return response.headers.get('x-perch-version');
      };
      expect(await versionOf(`${model}@1`)).toBe('1');
      expect(await versionOf(`${model}/1`)).toBe('1');
      expect(await versionOf(model, { 'x-perch-version': '1' })).toBe('1');
    });

    it('keeps to the endpoint’s limit of bytes, and says what it is sent wrong', async () => {
      const long = await post('/v1/completions', { model: 'small', prompt: 'a'.repeat(300) });
      expect([long.status, long.json.error.message]).toEqual([
        413,
        expect.stringContaining('200 bytes that small takes'),
      ]);
      expect((await post('/v1/completions', '{"model":')).json.error.message).toBe('the body is not JSON');
      expect((await post('/v1/completions', '[]')).status).toBe(400);
      const other = await post('/v1/images/generations', {});
      expect([other.status, other.json.error.message]).toEqual([404, expect.stringContaining('/v1/chat/completions')]);
    });
  });

  describe('/serve', () => {
    const events = (text: string) =>
      text
        .split('\n\n')
        .filter(Boolean)
        .map((one) => JSON.parse(one.replace(/^data: /, '')));

    it('streams the task’s own events, the reply last, when the body asks for them', async () => {
      const { status, headers, text } = await post('/serve/open', { prompt: '!', temperature: 0, stream: true });
      expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
      expect(headers.get('x-perch-arm')).toBe('o1');
      expect(events(text)).toEqual([
        { piece: '😀' },
        { piece: '?' },
        { text: '😀?', finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 5 } },
      ]);
    });

    it('streams when the header asks for it, unless the body says no', async () => {
      const accept = { accept: 'text/event-stream' };
      const asked = await post('/serve/open', { prompt: 'a', temperature: 0, maxTokens: 2 }, accept);
      expect(events(asked.text)).toHaveLength(3);
      const not = await post('/serve/open', { prompt: 'a', temperature: 0, maxTokens: 2, stream: false }, accept);
      expect(not.json.text).toBe('bc');
    });

    it('answers a mistake with its status, as no event has been sent', async () => {
      const { status, json } = await post('/serve/open', { prompt: '', stream: true });
      expect([status, json.error.code]).toEqual([400, 'invalid']);
    });
  });

  it('counts each request once, with the time to its first event', async () => {
    const { text } = await stand.stand.send('/metrics');
    const first = /perch_router_first_event_seconds_count\{endpoint="open",version="1",arm="o1"\} (\d+)/.exec(text);
    expect(Number(first?.[1])).toBe(2);
    expect(text).toMatch(/perch_processing_value_total\{[^}]*name="completion_tokens"[^}]*\} [1-9]/);
  });
});
