import { AppError } from '@perch/contracts';

export interface HuggingFacePlan {
  /** Files to take, and their paths in the version. */
  files: { from: string; to: string }[];
  leftOut: string[];
}

/** Small files that tell how to tokenize and what the numbers mean; kept where they are. */
const companions = new Set([
  'tokenizer.json',
  'tokenizer.parity.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.txt',
  'config.json',
  'sentence_bert_config.json',
  'modules.json',
  '1_Pooling/config.json',
  'generation_config.json',
  'preprocessor_config.json',
  'labels.txt',
  'README.md',
]);

/**
 * Picks the ONNX file (with its external data, if any) and the tokenizer's files of a plain Hugging Face folder; the
 * graph becomes `model.onnx`. Throws `invalid` with what is missing and how to make it.
 */
export function planHuggingFace(paths: readonly string[], onnx?: string): HuggingFacePlan {
  const graph = onnx ?? ['model.onnx', 'onnx/model.onnx'].find((path) => paths.includes(path)) ?? onlyGraph(paths);
  if (!paths.includes(graph)) throw new AppError('invalid', `--onnx: the folder holds no ${graph}`);
  if (!paths.includes('tokenizer.json') && !paths.includes('preprocessor_config.json'))
    throw new AppError(
      'invalid',
      'the folder holds no tokenizer.json (nor a preprocessor_config.json, as models of pictures have); save a fast tokenizer into it: AutoTokenizer.from_pretrained(…, use_fast=True).save_pretrained(folder)',
    );
  const folder = graph.includes('/') ? graph.slice(0, graph.lastIndexOf('/') + 1) : '';
  // Weights beside the graph keep their name: the graph refers to them by it.
  const external = paths.filter(
    (path) => path.startsWith(folder) && /^[^/]+(\.onnx_data|\.onnx\.data)$/.test(path.slice(folder.length)),
  );
  const files = [
    { from: graph, to: 'model.onnx' },
    ...external.map((path) => ({ from: path, to: path.slice(folder.length) })),
    ...paths.filter((path) => companions.has(path)).map((path) => ({ from: path, to: path })),
  ];
  const taken = new Set(files.map(({ from }) => from));
  return { files, leftOut: paths.filter((path) => !taken.has(path)) };
}

function onlyGraph(paths: readonly string[]): string {
  const graphs = paths.filter((path) => path.endsWith('.onnx'));
  if (graphs.length === 1) return graphs[0] as string;
  if (graphs.length > 1)
    throw new AppError(
      'invalid',
      `the folder holds several ONNX files (${graphs.slice(0, 5).join(', ')}); choose one with --onnx`,
    );
  throw new AppError(
    'invalid',
    'the folder holds no model.onnx or onnx/model.onnx; export one: optimum-cli export onnx --model NAME folder',
  );
}
