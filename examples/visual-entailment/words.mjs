/**
 * What a few words look like: colours of the upper, middle and lower third of a picture. The model of model.mjs is made of
 * this table, so that its answers are known ahead.
 */
const looks = {
  sunset: [[250, 140, 60], [230, 90, 60], [50, 30, 50]],
  forest: [[60, 120, 60], [30, 100, 40], [40, 70, 30]],
  beach: [[95, 180, 240], [40, 130, 190], [230, 210, 150]],
  meadow: [[110, 190, 240], [90, 170, 80], [80, 180, 60]],
  night: [[10, 15, 45], [15, 20, 50], [5, 5, 20]],
  snow: [[200, 220, 240], [240, 245, 250], [250, 250, 255]],
  desert: [[150, 200, 240], [230, 180, 110], [220, 160, 90]],
  red: [[220, 40, 40], [220, 40, 40], [220, 40, 40]],
  green: [[40, 180, 60], [40, 180, 60], [40, 180, 60]],
  blue: [[40, 70, 220], [40, 70, 220], [40, 70, 220]],
  yellow: [[240, 220, 40], [240, 220, 40], [240, 220, 40]],
  sky: [[95, 180, 240], [128, 128, 128], [128, 128, 128]],
  sand: [[128, 128, 128], [128, 128, 128], [230, 210, 150]],
  sea: [[128, 128, 128], [40, 130, 190], [128, 128, 128]],
}; // biome-ignore format: a table
/** Words that pull a text a little to one side, as the words of prompts do in a real encoder. */
const shades = { dark: -0.2, bright: 0.2, photo: 0.04, painting: -0.04, drawing: 0.08 };
const quiet = [
  'a',
  'an',
  'the',
  'of',
  'at',
  'in',
  'with',
  'and',
  'is',
  'over',
  'under',
  'covered',
  'some',
  'it',
  '.',
  ',',
];
const special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'];

export const vocabulary = [...special, ...quiet, ...Object.keys(shades), ...Object.keys(looks)];

/** Nine numbers: red, then green, then blue of the three thirds, 0 in the middle of the scale. */
export function wordVector(word) {
  if (Object.hasOwn(looks, word)) return [0, 1, 2].flatMap((c) => looks[word].map((third) => third[c] / 255 - 0.5));
  return new Array(9).fill(shades[word] ?? 0);
}

/** A WordPiece tokenizer.json of these words; any other one is [UNK], which looks like nothing. */
export const tokenizerJson = () => ({
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: special.map((content, id) => ({ id, content, special: true, single_word: false, lstrip: false, rstrip: false, normalized: false })),
  normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: {
    type: 'TemplateProcessing',
    single: [token('[CLS]', 0), sequence('A', 0), token('[SEP]', 0)],
    pair: [token('[CLS]', 0), sequence('A', 0), token('[SEP]', 0), sequence('B', 1), token('[SEP]', 1)],
    special_tokens: Object.fromEntries(['[CLS]', '[SEP]'].map((id) => [id, { id, ids: [special.indexOf(id)], tokens: [id] }])),
  },
  decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
  model: {
    type: 'WordPiece',
    unk_token: '[UNK]',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(vocabulary.map((word, id) => [word, id])),
  },
}); // biome-ignore format: a document

const token = (id, type_id) => ({ SpecialToken: { id, type_id } });
const sequence = (id, type_id) => ({ Sequence: { id, type_id } });
