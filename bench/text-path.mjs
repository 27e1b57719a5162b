/**
 * How many short texts (12 words) a core takes through the text built-ins alone, without HTTP and without a model:
 * body to tensors, tensors to reply; and what tokenizing alone costs for each kind of tokenizer.
 */
import { float32 } from '@perch/processing';
import { loadProcessing } from '@perch/processing/host';
import { tokenizerKinds } from '../libs/processing/fixtures/tokenizers/tokenizers.mjs';
import { median } from './measure.mjs';

const size = 384;
const texts = 4_000;
const words =
  'where can somebody find out how many parcels arrived late in the northern depot during last winter without asking around'.split(' ');
const bodies = Array.from({ length: 500 }, (_, at) =>
  Buffer.from(JSON.stringify({ text: Array.from({ length: 12 }, (_, i) => words[(at * 7 + i * 5) % words.length]).join(' ') })),
);
const names = ['input_ids', 'attention_mask', 'token_type_ids'];
const context = { state: {} };

const load = (builtin, tokenizer) =>
  loadProcessing({
    builtin,
    options: {},
    files: { list: () => ['tokenizer.json'], read: () => Promise.resolve(Buffer.from(tokenizer)) },
    signature: {
      inputs: names.map((name) => ({ name, datatype: 'INT64', shape: [-1, -1] })),
      outputs: [{ name: 'last_hidden_state', datatype: 'FP32', shape: [-1, -1, size] }],
    },
    maxBatchSize: 32,
  });

/** What a model would answer for so many tokens. */
const answers = new Map();
function answerFor({ input_ids: { shape } }) {
  const [rows, tokens] = shape;
  const key = `${rows} ${tokens}`;
  if (!answers.has(key)) {
    const values = Float32Array.from({ length: rows * tokens * size }, (_, i) => Math.sin(i));
    answers.set(key, { last_hidden_state: float32(values, [rows, tokens, size]) });
  }
  return answers.get(key);
}

async function cpuMicroseconds(run) {
  const before = process.cpuUsage();
  for (let at = 0; at < texts; at += 1) await run(bodies[at % bodies.length]);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / texts;
}

export async function measureTextPath({ rounds, say }) {
  const json = (kind) => JSON.stringify(tokenizerKinds[kind]());
  const embedding = await load('text-embedding', json('minilm'));
  const cases = {
    embedding: async (body) => {
      const { inputs, carry } = await embedding.preprocess(body, 'application/json', context);
      await embedding.postprocess(answerFor(inputs), carry, context);
    },
  };
  for (const kind of ['minilm', 'gpt2', 'xlm-roberta']) {
    const loaded = await load('text-tokens', json(kind));
    cases[kind] = (body) => loaded.preprocess(body, 'application/json', context);
  }
  const figures = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round += 1)
    for (const [name, run] of Object.entries(cases)) {
      const value = await cpuMicroseconds(run);
      if (round > 0) figures[name].push(value);
    }
  const of = (name) => median(figures[name]);
  say(`text path: ${Math.round(1e6 / of('embedding'))} short texts a second on one core through text-embedding`);
  return [
    { name: 'short text through text-embedding, no HTTP', value: of('embedding'), unit: 'µs', budget: 125 },
    { name: 'short text to tensors, WordPiece (MiniLM)', value: of('minilm'), unit: 'µs', budget: 125 },
    { name: 'short text to tensors, byte-level BPE (GPT-2)', value: of('gpt2'), unit: 'µs' },
    { name: 'short text to tensors, Unigram (XLM-R)', value: of('xlm-roberta'), unit: 'µs' },
  ];
}
