import { AppError, type ImageInputOptions, type Tensor } from '@perch/contracts';
import type { CallContext, LoadSetup } from '../contract.ts';
import { decodeNamed } from './decode.ts';
import { reducedSides, type Sides } from './geometry.ts';
import { type Found, readImages } from './image-body.ts';
import { type ImagePlan, planImages } from './model-input.ts';
import { readPreprocessorConfig } from './preprocessor-config.ts';

/** What every built-in of pictures does ahead of the model. */
export interface ImageInput {
  plan: ImagePlan;
  /** Throws `invalid`, `too_large`, `unsupported_media_type`; nothing is left out of a list. */
  tensorOf(found: Found, ctx: CallContext): Promise<Tensor>;
  read(body: unknown, ctx: CallContext): Promise<{ tensor: Tensor; single: boolean; count: number }>;
}

/** Reads the version's preprocessor_config.json where it has one. Throws `invalid`. */
export async function loadImageInput(setup: LoadSetup<ImageInputOptions>): Promise<ImageInput> {
  const { options, files } = setup;
  const config = files.has(options.config) ? readPreprocessorConfig(await files.json(options.config)) : undefined;
  const plan = planImages(setup, options, config);
  const limits = {
    maxBytes: options.maxBytes,
    maxPixels: options.maxPixels,
    decodeSeconds: options.decodeSeconds,
    animated: options.animated,
    orient: options.orient,
    alpha: plan.alpha,
    background: options.background,
  };
  const reducing = plan.reduces && {
    above: options.exactPixels,
    to: (sides: Sides) => reducedSides(sides, plan.preparation.plan(sides)),
  };
  async function tensorOf({ name, single, values }: Found, ctx: CallContext): Promise<Tensor> {
    const how = { ...(reducing && { reducing }), remainingMs: () => ctx.remainingMs() };
    const pictures = await Promise.all(
      values.map((value, i) => decodeNamed(value, single ? name : `${name}[${i}]`, limits, how)),
    );
    const tensor = plan.preparation.tensor(pictures);
    return plan.batched ? tensor : { ...tensor, shape: tensor.shape.slice(1) };
  }
  return {
    plan,
    tensorOf,
    async read(body, ctx) {
      const found = readImages(body, options.imageField, plan.pictures);
      return { tensor: await tensorOf(found, ctx), single: found.single, count: found.values.length };
    },
  };
}

/** For models that want more than the picture; optional inputs are left out. */
export function checkOtherInputs(setup: LoadSetup<unknown>, known: readonly string[], builtin: string): void {
  for (const { name, optional } of setup.signature.inputs)
    if (!known.includes(name) && !optional)
      throw new AppError('invalid', `processing ${builtin}: the model wants input "${name}"; ${builtin} fills ${known.join(', ')}`); // biome-ignore format: one sentence
}
