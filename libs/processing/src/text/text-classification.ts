import { AppError, type TensorSpec, type TextClassificationOptions } from '@perch/contracts';
import { defineProcessing, type ModuleFiles, type TextTokenizer } from '../contract.ts';
import { findOutput, readRows } from '../image/model-output.ts';
import { rank, sigmoid, softmax } from '../image/scores.ts';
import { readTextsOrPairs } from './text-body.ts';
import { planTextInput, type TextInputPlan, textTensors } from './text-input.ts';

interface Loaded {
  options: TextClassificationOptions;
  plan: TextInputPlan;
  output: TensorSpec;
  tokenizer: TextTokenizer;
  labels: string[];
  /** The version's config.json says that a text may have several labels. */
  severalLabels: boolean;
}

const curves = { softmax, sigmoid, none: (row: ArrayLike<number>) => row };

async function readConfig(files: ModuleFiles): Promise<{ id2label?: unknown; problem_type?: unknown }> {
  const config = files.has('config.json') ? await files.json('config.json') : undefined;
  return config && typeof config === 'object' ? config : {};
}

async function readLabels(files: ModuleFiles, given: string[] | undefined, inConfig: boolean): Promise<string[]> {
  if (given) return given;
  if (inConfig) return files.labels('config.json');
  return files.has('labels.txt') ? files.labels() : [];
}

/** Fewer labels than classes is a mistake that would show only in replies. */
function checkLabels(labels: string[], { name, shape }: TensorSpec): void {
  const classes = shape.length > 0 ? shape.at(-1)! : -1;
  if (labels.length > 0 && classes > 0 && labels.length !== classes)
    throw new AppError('invalid', `processing text-classification: there are ${labels.length} labels, but output "${name}" has ${classes} classes`); // biome-ignore format: one sentence
}

/** Texts or pairs in, the likeliest labels out: `{label, score, scores}`, or `{results: […]}` for a list. */
export const textClassification = defineProcessing<
  unknown,
  Loaded,
  { single: boolean; count: number },
  TextClassificationOptions
>({
  task: 'text-classification',
  async load({ options, files, signature, maxBatchSize }) {
    const plan = planTextInput({ signature, maxBatchSize, options, builtin: 'text-classification' });
    const output = findOutput(signature, {
      name: options.output,
      option: 'output',
      usual: ['logits', 'probabilities', 'scores'],
      builtin: 'text-classification',
    });
    const config = await readConfig(files);
    const labels = await readLabels(files, options.labels, config.id2label !== undefined);
    checkLabels(labels, output);
    const severalLabels = config.problem_type === 'multi_label_classification';
    return { options, plan, output, labels, severalLabels, tokenizer: await files.tokenizer(options.tokenizer) };
  },
  preprocess(body, { options, plan, tokenizer }) {
    const { texts, single } = readTextsOrPairs(body, options, plan.texts);
    const { overlong, truncation } = options;
    const { maxTokens, padding } = plan;
    const batch = tokenizer.encodeBatch(texts, { maxTokens, overlong, padding, truncation });
    return { inputs: textTensors(plan, batch), carry: { single, count: texts.length } };
  },
  postprocess(outputs, { loaded, carry }) {
    const { options, plan, output, labels, severalLabels } = loaded;
    const { values } = readRows(outputs, output.name, { count: carry.count, batched: plan.batched });
    const classes = values.length / carry.count;
    const curve = curves[options.scores ?? (classes === 1 || severalLabels ? 'sigmoid' : 'softmax')];
    const rankings = Array.from({ length: carry.count }, (_, i) =>
      rank(curve(values.subarray(i * classes, (i + 1) * classes)), labels, options.topK),
    );
    return carry.single ? rankings[0] : { results: rankings };
  },
});
