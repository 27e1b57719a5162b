import { AppError, type Signature, type TensorSpec, type TextEmbeddingOptions } from '@perch/contracts';
import { planTextInput, type TextInputPlan } from '../text/text-input.ts';

/** What the model's signature and the options leave to do for every request. */
export interface ModelPlan extends TextInputPlan {
  output: TensorSpec;
}

const refuse = (message: string): never => {
  throw new AppError('invalid', `processing text-embedding: ${message}`);
};

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
  const input = planTextInput({ signature, maxBatchSize, options, builtin: 'text-embedding' });
  return { ...input, output: findOutput(signature, options) };
}
