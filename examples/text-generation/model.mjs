/**
 * A decoder that knows one nursery rhyme ("The House That Jack Built", 1755): the next word by the two before it, counted
 * from the text, as an ONNX graph from `input_ids` to `logits` like any GPT without a cache, with a byte-level BPE tokenizer
 * whose words are one token each. Deterministic.
 *
 *     node examples/text-generation/model.mjs       prints the folder
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../../scripts/models/cache.mjs';
import { constant, node, types, valueInfo, writeModel } from '../../scripts/models/onnx.mjs';

const tail = ['that lay in the house that Jack built', 'that ate the malt', 'that killed the rat', 'that worried the cat', 'that tossed the dog', 'that milked the cow with the crumpled horn']; // biome-ignore format: one row
const who = ['malt', 'rat', 'cat', 'dog', 'cow with the crumpled horn', 'maiden all forlorn'];
/** The lines of the rhyme, each longer than the one before. */
export const lines = [
  'This is the house that Jack built.',
  ...who.map(
    (one, at) =>
      `This is the ${one} ${tail
        .slice(0, at + 1)
        .reverse()
        .join(' ')}.`,
  ),
];

const end = '<|end|>';
const space = 'Ġ'; // how byte-level BPE writes a space

/** Words as they stand in the text: with the space in front, the dot apart. */
const wordsOf = (line) => line.replace('.', ' .').split(' ').map((word, at) => (at === 0 || word === '.' ? word : space + word)); // biome-ignore format: one row

function vocabulary() {
  const words = [...new Set(lines.flatMap(wordsOf))];
  const tokens = [end, ...new Set(words.flatMap((word) => [...word]))].map((token) => token);
  const merges = [];
  for (const word of words)
    for (let length = 2; length <= [...word].length; length += 1) {
      const whole = word.slice(0, length);
      if (tokens.includes(whole)) continue;
      merges.push([word.slice(0, length - 1), word[length - 1]]);
      tokens.push(whole);
    }
  return { words, tokens, merges };
}

/** What Hugging Face's `ByteLevel` BPE files look like. */
const tokenizerJson = ({ tokens, merges }) => ({
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: [{ id: 0, content: end, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }],
  normalizer: null,
  pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
  post_processor: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: false, use_regex: true },
  decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
  model: {
    type: 'BPE',
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
    merges: merges.map((pair) => pair.join(' ')),
  },
}); // biome-ignore format: as such files are

/** [word before · words + word, next token]: ln of how often it followed; what never did is out of reach. */
function counted({ words, tokens }) {
  const known = ['', ...words];
  const table = new Float32Array(known.length ** 2 * tokens.length).fill(-30);
  const counts = new Map();
  for (const line of lines) {
    const ids = [...wordsOf(line), end];
    for (let at = 1; at < ids.length; at += 1) {
      const before = at > 1 ? known.indexOf(ids[at - 2]) : 0;
      const row = before * known.length + known.indexOf(ids[at - 1]);
      const key = row * tokens.length + tokens.indexOf(ids[at]);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  for (const [key, count] of counts) table[key] = Math.log(count);
  return { known, table };
}

async function build(folder) {
  const all = vocabulary();
  const { known, table } = counted(all);
  // tokens that are no whole word count as no word
  const wordOf = BigInt64Array.from(all.tokens, (token) => BigInt(Math.max(0, known.indexOf(token))));
  const ints = (name, values) => constant(name, types.INT64, [values.length], BigInt64Array.from(values, BigInt));
  await writeModel(join(folder, 'model.onnx'), {
    weights: [
      constant('word.of', types.INT64, [all.tokens.length], wordOf),
      constant('table', types.FP32, [known.length ** 2, all.tokens.length], table),
      constant('words', types.INT64, [], BigInt64Array.of(BigInt(known.length))),
      ints('axis.1', [1]),
      ints('from.0', [0]),
      ints('to.last', [-1]),
      ints('one', [1]),
    ],
    graph: {
      name: 'rhyme',
      node: [
        node('Gather', ['word.of', 'input_ids'], ['now']),
        node('Slice', ['now', 'from.0', 'one', 'axis.1'], ['first']),
        node('Sub', ['first', 'first'], ['nothing']),
        node('Slice', ['now', 'from.0', 'to.last', 'axis.1'], ['earlier']),
        node('Concat', ['nothing', 'earlier'], ['before'], { axis: { i: 1 } }),
        node('Mul', ['before', 'words'], ['row.from']),
        node('Add', ['row.from', 'now'], ['row']),
        node('Gather', ['table', 'row'], ['logits']),
      ],
      input: [valueInfo('input_ids', types.INT64, ['batch', 'sequence'])],
      output: [valueInfo('logits', types.FP32, ['batch', 'sequence', all.tokens.length])],
    },
    metadata: { model: 'the house that Jack built' },
  });
  await writeFile(join(folder, 'tokenizer.json'), `${JSON.stringify(tokenizerJson(all))}\n`);
  await writeFile(
    join(folder, 'config.json'),
    `${JSON.stringify({ model_type: 'rhyme', eos_token_id: 0, max_position_embeddings: 128 })}\n`,
  );
}

/** Folder of the version, built once a machine. */
export const rhymeFolder = () => cachedFolder('rhyme.r1', build);

if (process.argv[1] && import.meta.filename === process.argv[1]) console.log(await rhymeFolder());
