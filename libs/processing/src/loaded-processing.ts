import { AppError, type BuiltinName, parseBuiltinOptions } from '@perch/contracts';
import type { AnyModule } from './contract.ts';
import { clip } from './image/clip.ts';
import { imageClassification } from './image/image-classification.ts';
import { imageEmbedding } from './image/image-embedding.ts';
import { type LoadedProcessing, loadModule, type ModuleSetup } from './loaded-module.ts';
import { passthrough } from './passthrough/passthrough.ts';
import { textClassification } from './text/text-classification.ts';
import { textTokens } from './text/text-tokens.ts';
import { textEmbedding } from './text-embedding/text-embedding.ts';
import { textGeneration } from './text-generation/text-generation.ts';

const builtins: Record<BuiltinName, AnyModule> = {
  passthrough,
  'text-tokens': textTokens,
  'text-embedding': textEmbedding,
  'text-classification': textClassification,
  'text-generation': textGeneration,
  'image-classification': imageClassification,
  'image-embedding': imageEmbedding,
  clip,
};

/**
 * Loads the built-in of an endpoint for one version.
 * Throws `invalid` naming the field for an unknown built-in or bad options, `not_available_yet` for a planned built-in,
 * `not_found` for a missing file, `invalid` when the model's tensors do not suit the built-in.
 */
export async function loadProcessing(
  setup: ModuleSetup & { builtin: string; options?: Record<string, unknown> },
): Promise<LoadedProcessing> {
  const options = parseBuiltinOptions(setup.builtin, setup.options);
  const module = builtins[setup.builtin as BuiltinName];
  if (setup.signature.inputs.length === 0 || setup.signature.outputs.length === 0)
    throw new AppError('invalid', `processing ${setup.builtin}: the model's inputs and outputs are not known`);
  return loadModule(module, options, setup);
}
