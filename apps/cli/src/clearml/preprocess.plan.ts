/** A built-in processing module, and whether it can be had today. */
export interface Guess {
  builtin: string;
  available: boolean;
}

const signs: readonly [RegExp, Guess][] = [
  [
    /SentenceTransformer|mean_pooling|sentence[-_ ]?embedding|embedding/i,
    { builtin: 'text-embedding', available: true },
  ],
  [/AutoTokenizer|BertTokenizer|tokenizer|transformers/i, { builtin: 'text-classification', available: true }],
  [/\bPIL\b|Image\.open|cv2|torchvision|imageio/i, { builtin: 'image-classification', available: true }],
];

/** The built-in that does most likely what this Python file does; its text is read as words, never run. */
export function guessBuiltin(source: string): Guess {
  for (const [pattern, guess] of signs) if (pattern.test(source)) return guess;
  return { builtin: 'passthrough', available: true };
}

/** The package that modules of users import; this program does not. */
const sdk = '@perch/processing';

const skeleton = `import { defineProcessing, float32 } from '${sdk}';

export default defineProcessing({
  /** Once per version and worker: open the files of the version here (ClearML: load). */
  async load({ files }) {
    return {};
  },
  /** The request's body to tensors (ClearML: preprocess). */
  preprocess(body, loaded, ctx) {
    return { inputs: { INPUT__0: float32(body.x, [1, body.x.length]) } };
  },
  /** Tensors to the reply's body (ClearML: postprocess). */
  postprocess(outputs, carried, ctx) {
    return { y: Array.from(outputs.OUTPUT__0.data) };
  },
});`;

/** Why a Python file is refused, and what to do instead. */
export function preprocessRefusal(file: string, source: string | undefined, endpoint: string): string {
  const { builtin, available } = guessBuiltin(source ?? '');
  const advice = available
    ? `The built-in ${builtin} fits: leave --preprocess out and run  perch endpoint update ${endpoint} --processing ${builtin}`
    : `The built-in ${builtin} will fit and is not available yet; until then preprocess in the client, with --processing passthrough`;
  return [
    `--preprocess ${file}: Python does not run in the router. ${advice}`,
    'or write it as a module, and give the file (--preprocess module.ts registers it):',
    '',
    skeleton,
  ].join('\n');
}
