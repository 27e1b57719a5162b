import { z } from 'zod';
import {
  type DecodeOptions,
  imageChoices,
  imageDefaults,
  imageFilters,
  type PreparationOptions,
} from './image-options.ts';

const side = z.number().int().min(1).max(16_384);
const level = z.number().min(0).max(255);
const colour = z.tuple([level, level, level]);
const perChannel = z.array(z.number()).refine((list) => list.length === 1 || list.length === 3, 'wants 1 or 3 numbers');
const fieldName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/, 'a field is 1 to 64 of A-Z a-z 0-9 _ . -');
const fileName = z.string().min(1).max(512);
const tensorName = z.string().min(1).max(256);

const imageBox = z.strictObject({ height: side, width: side });

const imageSize = z.union([
  imageBox,
  z.strictObject({ shortestEdge: side, longestEdge: side.optional() }),
  z.strictObject({ longestEdge: side }),
  z.strictObject({ height: side, maxWidth: side.optional() }),
]);

const imageLimits = {
  maxBytes: z.number().int().min(1).max(268_435_456).default(imageDefaults.maxBytes),
  maxPixels: z.number().int().min(1).max(268_435_456).default(imageDefaults.maxPixels),
  decodeSeconds: z.number().int().min(1).max(300).default(imageDefaults.decodeSeconds),
  animated: z.enum(imageChoices.animated).default(imageDefaults.animated),
  orient: z.boolean().default(imageDefaults.orient),
  alpha: z.enum(imageChoices.alpha).default(imageDefaults.alpha),
  background: colour.default(imageDefaults.background),
};

const imagePreparation = {
  size: imageSize.optional(),
  fit: z.enum(imageChoices.fit).optional(),
  multipleOf: z.number().int().min(1).max(1024).optional(),
  onlyShrink: z.boolean().optional(),
  resample: z.enum(imageFilters).optional(),
  antialias: z.boolean().optional(),
  centerCrop: imageBox.optional(),
  cropRounding: z.enum(imageChoices.cropRounding).optional(),
  pad: imageBox.optional(),
  padAt: z.enum(imageChoices.padAt).optional(),
  padColor: z.union([z.literal('zero'), colour]).optional(),
  rescaleFactor: z.number().positive().optional(),
  imageMean: perChannel.optional(),
  imageStd: perChannel.optional(),
  channels: z.enum(imageChoices.channels).optional(),
  layout: z.enum(imageChoices.layout).optional(),
};

const imageInput = {
  ...imageLimits,
  ...imagePreparation,
  /**
   * Pictures of more pixels are brought to three times their wanted size while they are decoded, so that they do not hold
   * others up: about half a level of 255 from the exact result on average. The rest is exact.
   */
  exactPixels: z.number().int().min(1).max(268_435_456).default(1_048_576),
  /** Default: as the file says, else flatten. */
  alpha: z.enum(['flatten', 'drop']).optional(),
  /** File of the version in Hugging Face's words; read where the version has it. */
  config: fileName.default('preprocessor_config.json'),
  /** Field of the request; left out: `image`, `images`, `inputs` or `input`. */
  imageField: fieldName.optional(),
  /** The model's input; left out: the only one that takes pictures. */
  input: tensorName.optional(),
  /** The model's output to read; left out: the only floating one, or the first of the usual names. */
  output: tensorName.optional(),
};

const positive = (list: number[] | undefined) => !list || list.every((value) => value > 0);
const stdRule = { path: ['imageStd'], message: 'wants numbers above 0' };
const filterRule = { path: ['antialias'], message: 'false wants resample bilinear or nearest' };
const plainFilter = ({ antialias, resample }: { antialias?: boolean; resample?: string }) =>
  antialias !== false || !resample || resample === 'bilinear' || resample === 'nearest';

/** Options of `decodeImage`, which checks them without this schema; the two are held against each other in tests. */
export const decodeOptions = z.strictObject(imageLimits) satisfies z.ZodType<Required<DecodeOptions>, DecodeOptions>;

/** Options of `imageTensor`, likewise. */
export const preparationOptions = z
  .strictObject({ ...imagePreparation, datatype: z.enum(imageChoices.datatype).optional() })
  .refine(({ imageStd }) => positive(imageStd), stdRule)
  .refine(plainFilter, filterRule) satisfies z.ZodType<PreparationOptions>;

export const imageClassificationOptions = z
  .strictObject({
    ...imageInput,
    /** So many labels in the reply, the likeliest first. */
    topK: z.number().int().min(1).max(1000).default(5),
    /** What the model's numbers become; `none` for a model that answers probabilities. */
    scores: z.enum(['softmax', 'sigmoid', 'none']).default('softmax'),
    /** In the model's order; left out: `id2label` of config.json, else labels.txt of the version, else numbers. */
    labels: z.array(z.string().max(512)).min(1).max(100_000).optional(),
  })
  .refine(({ imageStd }) => positive(imageStd), stdRule)
  .refine(plainFilter, filterRule)
  .meta({ id: 'ImageClassificationOptions' });
export type ImageClassificationOptions = z.output<typeof imageClassificationOptions>;

export const imageEmbeddingOptions = z
  .strictObject({
    ...imageInput,
    /** How an output of one vector for each patch, or for each place of a map, becomes one. */
    pooling: z.enum(['cls', 'mean']).default('cls'),
    /** Scale each vector to length 1. */
    normalize: z.boolean().default(true),
    /** `base64`: little-endian float32. */
    encoding: z.enum(['float', 'base64']).default('float'),
    outputField: fieldName.optional(),
  })
  .refine(({ imageStd }) => positive(imageStd), stdRule)
  .refine(plainFilter, filterRule)
  .meta({ id: 'ImageEmbeddingOptions' });
export type ImageEmbeddingOptions = z.output<typeof imageEmbeddingOptions>;

export const clipOptions = z
  .strictObject({
    ...imageInput,
    /** Endpoint of the text encoder, where this version holds the image encoder alone. */
    textEndpoint: z.string().min(1).max(256).optional(),
    /** Endpoint of the image encoder, where this version holds the text encoder alone. */
    imageEndpoint: z.string().min(1).max(256).optional(),
    /** Each holds `{}` once, for the label; the vectors of one label's prompts are averaged. */
    templates: z
      .array(
        z
          .string()
          .max(512)
          .refine((template) => template.split('{}').length === 2, 'wants {} once, for the label'),
      )
      .min(1)
      .max(256)
      .default(['a photo of a {}.']),
    /** Asked for where the request names none. */
    labels: z.array(z.string().min(1).max(512)).min(1).max(1000).optional(),
    /** What similarities are multiplied with ahead of softmax. CLIP's own 1 / 0.01. */
    logitScale: z.number().positive().max(10_000).default(100),
    /** Special tokens included. */
    maxTokens: z.number().int().min(3).max(512).default(77),
    overlong: z.enum(['truncate', 'refuse']).default('truncate'),
    tokenizer: fileName.default('tokenizer.json'),
    textField: fieldName.optional(),
    /** Left out: `text_embeds`, `text_features`, … */
    textOutput: tensorName.optional(),
    /** Prompts of one call of `textEndpoint`. */
    textsAtOnce: z.number().int().min(1).max(1024).default(8),
    encoding: z.enum(['float', 'base64']).default('float'),
  })
  .refine(({ imageStd }) => positive(imageStd), stdRule)
  .refine(plainFilter, filterRule)
  .meta({ id: 'ClipOptions' });
export type ClipOptions = z.output<typeof clipOptions>;

/** Options that all built-ins of pictures share. */
export type ImageInputOptions = Omit<ImageEmbeddingOptions, 'pooling' | 'normalize' | 'encoding' | 'outputField'>;

/** Base64, a `data:` URL, `{"b64": "…"}`, or a file of a multipart request (a Buffer). */
const pictureBytes = z.custom<string | Uint8Array | { b64: string }>(
  (value) =>
    typeof value === 'string' ||
    value instanceof Uint8Array ||
    (typeof value === 'object' && value !== null && 'b64' in value),
  'wants base64, a data: URL or a file',
);
const pictureList = z.union([pictureBytes, z.array(pictureBytes).min(1)]);

/** One picture or a list, in one of four fields; or a body that is a picture. */
export const imageRequest = z.union([
  z.instanceof(Uint8Array),
  z.looseObject({ image: pictureList }),
  z.looseObject({ images: pictureList }),
  z.looseObject({ inputs: pictureList }),
  z.looseObject({ input: pictureList }),
]);

const labelScore = z.object({ label: z.string(), score: z.number() });
/** The likeliest label, and `scores` from the likeliest on. */
const ranking = labelScore.extend({ scores: z.array(labelScore).min(1) });
/** `results` for a list of pictures. */
export const imageRankingReply = z.union([ranking, z.looseObject({ results: z.array(ranking) })]);

const textList = z.union([z.string(), z.array(z.string()).min(1)]);
/** `labels` go into templates, `text` are captions as they stand; without pictures, texts whose vectors are wanted. */
export const zeroShotImageRequest = z.union([
  z.instanceof(Uint8Array),
  z.looseObject({
    image: pictureList.optional(),
    images: pictureList.optional(),
    labels: textList.optional(),
    text: textList.optional(),
    templates: textList.optional(),
  }),
]);
