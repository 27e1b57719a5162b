import { createRequire } from 'node:module';
import { lines, rhymeFolder } from './model.mjs';

export const title = 'Text word by word: top-p, seeds, stop texts, streaming, asked with the OpenAI client';
export const triton = true;

export async function run(example) {
  const folder = await example.step('count the words of a rhyme (once)', rhymeFolder);
  await example.step('upload and publish it', () => example.perch('model', 'upload', 'nlp/rhyme', folder, '--publish'));
  await example.step('add the endpoint with the built-in text-generation', () =>
    example.perch('endpoint', 'add', 'text/rhyme', '--model', 'nlp/rhyme', '--processing', 'text-generation', '--wait=120s'),
  ); // biome-ignore format: one command

  const { OpenAI } = createRequire(import.meta.url)('openai');
  const client = new OpenAI({ baseURL: `${example.url}/v1`, apiKey: example.key });
  const complete = async (prompt, more = {}) =>
    (await client.completions.create({ model: 'text/rhyme', prompt, max_tokens: 60, ...more })).choices[0];

  const cat = await example.step('the most likely words', () => complete('This is the cat', { temperature: 0 }));
  example.say(`This is the cat${cat.text}`);
  example.check('the whole line', `This is the cat${cat.text}`, lines[3]);
  example.check('it ended by itself', cat.finish_reason, 'stop');

  const drawn = [];
  for (const seed of [1, 2, 3, 4, 5, 6]) drawn.push((await complete('This is the', { top_p: 0.95, seed })).text);
  for (const text of new Set(drawn)) example.say(`This is the${text}`);
  for (const text of drawn) example.checkThat('a line of the rhyme', lines.includes(`This is the${text}`), text);
  example.checkThat('not always the same one', new Set(drawn).size > 1, drawn);
  example.check(
    'the same seed, the same text',
    (await complete('This is the', { top_p: 0.95, seed: 3 })).text,
    drawn[2],
  );

  const pieces = await example.step('the same, streamed', async () => {
    const stream = await client.completions.create({
      model: 'text/rhyme', prompt: 'This is the maiden', max_tokens: 60, temperature: 0, stream: true,
    }); // biome-ignore format: one request
    const found = [];
    for await (const chunk of stream) if (chunk.choices[0]?.text) found.push(chunk.choices[0].text);
    return found;
  });
  example.checkThat('it came in pieces', pieces.length > 10, pieces);
  example.check('which make the line', `This is the maiden${pieces.join('')}`, lines[6]);

  const stopped = await complete('This is the dog', { temperature: 0, stop: ' the rat' });
  example.check(
    'a stop text ends it',
    [stopped.text, stopped.finish_reason],
    [' that worried the cat that killed', 'stop'],
  );
}
