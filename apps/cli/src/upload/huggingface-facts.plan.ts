import { AppError, type ProcessingSpec } from '@perch/contracts';

/** Small JSON files of a Hugging Face folder, as they were read; absent where the folder has none. */
export interface HuggingFaceFiles {
  config?: Json;
  tokenizerConfig?: Json;
  sentenceBert?: Json;
  /** modules.json: the steps of a sentence-transformers model. */
  modules?: Json[];
  pooling?: Json;
  preprocessor?: Json;
  hasTokenizer: boolean;
}
type Json = Record<string, unknown>;

/** What the folder says of its model, in Perch's words. */
export interface HuggingFaceFacts {
  task: string;
  /** Carried by the version: built-in and options. */
  processing: ProcessingSpec;
  metadata: Record<string, string>;
  notes: string[];
}

/** The end of an architecture's name, and the task that it is for. */
const heads: readonly [RegExp, string][] = [
  [/ForSequenceClassification$/, 'text-classification'],
  [/ForImageClassification$/, 'image-classification'],
  [/(ForCausalLM|LMHeadModel)$/, 'text-generation'],
  [/^(CLIP|Siglip2?|ChineseCLIP|AltCLIP)Model$/, 'zero-shot-image-classification'],
  [/For(TokenClassification|QuestionAnswering|MaskedLM|MultipleChoice|PreTraining)$/, 'text-tokens'],
  [/For\w+$/, 'other'],
];

const builtinOf: Readonly<Record<string, string>> = {
  'text-embedding': 'text-embedding',
  'text-classification': 'text-classification',
  'text-generation': 'text-generation',
  'text-tokens': 'text-tokens',
  'image-classification': 'image-classification',
  'image-embedding': 'image-embedding',
  'zero-shot-image-classification': 'clip',
  other: 'passthrough',
};

/** `--task` may name any of these. */
export const huggingFaceTasks: readonly string[] = Object.keys(builtinOf).filter((task) => task !== 'other');

const number = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

export function findTask(files: HuggingFaceFiles, wish: string | undefined): string {
  if (wish !== undefined) {
    if (huggingFaceTasks.includes(wish)) return wish;
    throw new AppError('invalid', `--task: there is no ${wish}; there are ${huggingFaceTasks.join(', ')}`);
  }
  if (files.modules || files.pooling || files.sentenceBert) return 'text-embedding';
  const architecture = architectureOf(files);
  const known = heads.find(([pattern]) => pattern.test(architecture ?? ''))?.[1];
  if (known) return known;
  if (files.preprocessor && !files.hasTokenizer) return 'image-embedding';
  if (!files.hasTokenizer) return 'other';
  return /Model$/.test(architecture ?? '') ? 'text-embedding' : 'text-tokens';
}

const architectureOf = ({ config }: HuggingFaceFiles): string | undefined =>
  Array.isArray(config?.['architectures']) ? text(config['architectures'][0]) : undefined;

/** RoBERTa's kind counts positions from behind the padding token. */
const startsLate = /^(roberta|xlm-roberta|camembert|mpnet|longformer|data2vec-text)/;
/** What a tokenizer says that knows no limit. */
const noLimit = 1_000_000;

/** The most tokens that the model was made for; undefined: the folder does not say. */
export function findMaxTokens({ config = {}, sentenceBert, tokenizerConfig }: HuggingFaceFiles): number | undefined {
  const positions = number(config['max_position_embeddings']) ?? number(config['n_positions']);
  const offset = startsLate.test(text(config['model_type']) ?? '') ? ((config['pad_token_id'] as number) ?? 1) + 1 : 0;
  const said = [
    number(sentenceBert?.['max_seq_length']),
    number(tokenizerConfig?.['model_max_length']),
    positions && positions - offset,
  ].filter((one) => one !== undefined && one < noLimit) as number[];
  return said.length === 0 ? undefined : Math.min(...said, 131_072);
}

/** Which of the built-in's ways to one vector the folder's pooling is; a note where it is none of them. */
function poolingOf(files: HuggingFaceFiles, notes: string[]): { pooling?: string } {
  const { pooling } = files;
  if (!pooling) return {};
  const modes = Object.keys(pooling).filter((key) => key.startsWith('pooling_mode_') && pooling[key] === true);
  const named = text(pooling['pooling_mode']);
  const [mode] = modes.length > 0 ? modes.map((key) => key.replace('pooling_mode_', '')) : [named ?? ''];
  if (modes.length <= 1 && (mode === 'mean_tokens' || mode === 'mean')) return { pooling: 'mean' };
  if (modes.length <= 1 && (mode === 'cls_token' || mode === 'cls')) return { pooling: 'cls' };
  notes.push(
    `1_Pooling/config.json pools by ${modes.map((key) => key.replace('pooling_mode_', '')).join(' and ') || (named ?? 'nothing that is known')}; text-embedding knows mean and cls, so all token vectors are answered (pooling none); write a module for more`,
  );
  return { pooling: 'none' };
}

function embeddingOptions(files: HuggingFaceFiles, notes: string[]): Json {
  const pooling = poolingOf(files, notes);
  const steps = files.modules?.map((step) => text(step['type']) ?? '');
  const extra = steps?.filter((type) => !/\.(Transformer|Pooling|Normalize)$/.test(type)) ?? [];
  if (extra.length > 0)
    notes.push(`modules.json has ${extra.join(', ')} behind the model, which text-embedding does not run`);
  return {
    ...pooling,
    ...(steps ? { normalize: steps.some((type) => type.endsWith('.Normalize')) } : {}),
  };
}

const sizeOf = (size: unknown): string | undefined => {
  if (typeof size === 'number') return String(size);
  const { height, width, shortest_edge: shortest } = (size ?? {}) as Json;
  return height && width ? `${height}x${width}` : shortest ? String(shortest) : undefined;
};

function optionsFor(task: string, files: HuggingFaceFiles, notes: string[]): Json {
  const maxTokens = findMaxTokens(files);
  const limit = maxTokens === undefined ? {} : { maxTokens };
  const { config = {} } = files;
  switch (task) {
    case 'text-embedding':
      return { ...limit, ...embeddingOptions(files, notes) };
    case 'text-classification':
      return { ...limit, ...(config['problem_type'] === 'regression' ? { scores: 'none' } : {}) };
    case 'image-classification':
      return config['problem_type'] === 'multi_label_classification' ? { scores: 'sigmoid' } : {};
    case 'text-tokens':
      return limit;
    default:
      return {};
  }
}

/** Reads task, labels, pooling, normalisation, length and picture size from the folder's files; guesses nothing else. */
export function readHuggingFace(files: HuggingFaceFiles, wish?: string): HuggingFaceFacts {
  const notes: string[] = [];
  const task = findTask(files, wish);
  const options = optionsFor(task, files, notes);
  const { config = {}, preprocessor } = files;
  const architecture = architectureOf(files);
  if (task === 'other')
    notes.push(`no built-in is for ${architecture ?? 'this model'}: passthrough takes and answers its tensors`);
  const labels = config['id2label'] as Json | undefined;
  const facts: Record<string, string | undefined> = {
    task: task === 'other' ? undefined : task,
    'hf.architecture': architecture,
    'hf.model_type': text(config['model_type']),
    'hf.name': text(config['_name_or_path']) || undefined,
    'hf.labels': labels && typeof labels === 'object' ? String(Object.keys(labels).length) : undefined,
    'hf.max_tokens': task.startsWith('text-') ? findMaxTokens(files)?.toString() : undefined,
    'hf.image_size': preprocessor && sizeOf(preprocessor['crop_size'] ?? preprocessor['size']),
  };
  const metadata = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
  const builtin = builtinOf[task]!;
  const processing = { builtin, ...(Object.keys(options).length > 0 ? { options } : {}) } as ProcessingSpec;
  return { task, processing, metadata, notes };
}

/** The command that serves the version, its flags filled in. */
export function endpointCommand(
  endpoint: string,
  model: string,
  { builtin, options = {} }: { builtin?: string | undefined; options?: Json | undefined },
): string {
  const quoted = (value: string) => (/^[\w.:=/,-]+$/.test(value) ? value : `'${value}'`);
  const pairs = Object.entries(options).map(([key, value]) =>
    quoted(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`),
  );
  return ['perch endpoint add', endpoint, '--model', model, '--processing', builtin ?? 'passthrough', ...pairs.flatMap((pair) => ['--option', pair])].join(' '); // biome-ignore format: one row
}
