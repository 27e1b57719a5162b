import { AppError, type Signature, type TensorSpec, type TextEmbeddingOptions } from '@perch/contracts';

/** What the model's signature and the options leave to do for every request. */
export interface ModelPlan {
  ids: TensorSpec;
  /** Absent where the model's signature names none. */
  mask?: TensorSpec;
  kinds?: TensorSpec;
  output: TensorSpec;
  /** The model takes exactly so many tokens; 0 = any. */
  fixedTokens: number;
  /** Texts of one request: from, to. */
  texts: [number, number];
  maxTokens: number;
  /** False: one text without a batch dimension. */
  batched: boolean;
}

const wanted = 'text-embedding fills input_ids, attention_mask and token_type_ids';

const refuse = (message: string): never => {
  throw new AppError('invalid', `processing text-embedding: ${message}`);
};

function checkInput({ name, datatype, shape }: TensorSpec, ids: TensorSpec): void {
  if (datatype !== 'INT32' && datatype !== 'INT64') refuse(`input "${name}" is ${datatype}, wanted INT32 or INT64`);
  if (shape.length !== 1 && shape.length !== 2) refuse(`input "${name}" has ${shape.length} dimensions, wanted 2`);
  if (shape.length !== ids.shape.length) refuse(`input "${name}" has another number of dimensions than input_ids`);
}

/** The output that holds vectors: named, or the only floating one, or the first of the usual names. */
function findOutput({ outputs }: Signature, { output, pooling }: TextEmbeddingOptions): TensorSpec {
  const names = outputs.map(({ name }) => name).join(', ');
  const usual =
    pooling === 'none'
      ? ['last_hidden_state', 'token_embeddings']
      : ['sentence_embedding', 'last_hidden_state', 'token_embeddings'];
  const floats = outputs.filter(({ datatype }) => datatype === 'FP32');
  const found = output
    ? outputs.find(({ name }) => name === output)
    : floats.length === 1
      ? floats[0]
      : usual.map((name) => floats.find((spec) => spec.name === name)).find((spec) => spec !== undefined);
  if (!found)
    return refuse(
      output
        ? `the model has no output "${output}"; it has ${names}`
        : `name one of the outputs ${names} in options.output`,
    );
  if (found.datatype !== 'FP32') refuse(`output "${found.name}" is ${found.datatype}, wanted FP32`);
  return found;
}

/** Checks that the model takes tokens and gives vectors. Throws `invalid` naming the tensor at fault. */
export function planModel(signature: Signature, maxBatchSize: number, options: TextEmbeddingOptions): ModelPlan {
  const find = (name: string) => signature.inputs.find((input) => input.name === name);
  const ids = find('input_ids') ?? refuse(`the model has no input "input_ids"; ${wanted}`);
  const mask = find('attention_mask');
  const kinds = find('token_type_ids');
  for (const input of signature.inputs) {
    if (input === ids || input === mask || input === kinds) checkInput(input, ids);
    else if (!input.optional) refuse(`the model wants input "${input.name}"; ${wanted}`);
  }
  const batched = ids.shape.length === 2;
  const fixedTokens = Math.max(0, ids.shape.at(-1)!);
  if (
    fixedTokens > 0 &&
    typeof options.padding === 'object' &&
    'to' in options.padding &&
    options.padding.to !== fixedTokens
  )
    refuse(`options.padding.to is ${options.padding.to}, but the model takes exactly ${fixedTokens} tokens`);
  const fixedTexts = batched ? ids.shape[0]! : 1;
  return {
    ids,
    ...(mask && { mask }),
    ...(kinds && { kinds }),
    output: findOutput(signature, options),
    fixedTokens,
    texts: fixedTexts > 0 ? [fixedTexts, fixedTexts] : [1, maxBatchSize || 1024],
    maxTokens: fixedTokens > 0 ? Math.min(fixedTokens, options.maxTokens) : options.maxTokens,
    batched,
  };
}
