import { z } from 'zod';

const side = z.number().int().min(1).max(16_384);
const level = z.number().min(0).max(255);
const colour = z.tuple([level, level, level]);
const perChannel = z.array(z.number()).refine((list) => list.length === 1 || list.length === 3, 'wants 1 or 3 numbers');
const fieldName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/, 'a field is 1 to 64 of A-Z a-z 0-9 _ . -');
const fileName = z.string().min(1).max(512);
const tensorName = z.string().min(1).max(256);

const imageBox = z.strictObject({ height: side, width: side });
export type ImageBox = z.output<typeof imageBox>;

/** Both sides; or one side, the other one by the picture's own proportions. */
const imageSize = z.union([
  imageBox,
  z.strictObject({ shortestEdge: side, longestEdge: side.optional() }),
  z.strictObject({ longestEdge: side }),
  z.strictObject({ height: side, maxWidth: side.optional() }),
]);
export type ImageSize = z.output<typeof imageSize>;

/** Filters of Pillow by their names there. */
export const imageFilters = ['nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos'] as const;
export type ImageFilter = (typeof imageFilters)[number];

/** What is read of a picture, and how far. Anything beyond a limit is refused by its header, before it is decoded. */
const imageLimits = {
  /** Of one picture's file. */
  maxBytes: z.number().int().min(1).max(268_435_456).default(20_971_520),
  /** Width times height. */
  maxPixels: z.number().int().min(1).max(268_435_456).default(40_000_000),
  /** Of decoding one picture, in whole seconds. */
  decodeSeconds: z.number().int().min(1).max(300).default(10),
  /** What happens to a picture of several frames. */
  animated: z.enum(['refuse', 'first']).default('refuse'),
  /** Turn the picture as its EXIF orientation says. */
  orient: z.boolean().default(true),
  /** Transparent pixels: laid over `background`, or their colour taken as it is (as Pillow's `convert('RGB')` does). */
  alpha: z.enum(['flatten', 'drop']).default('flatten'),
  background: colour.default([255, 255, 255]),
};

/** How a picture becomes numbers. Left out: as the version's preprocessor_config.json says, else as stands here. */
const imagePreparation = {
  /** Default: the sides that the model's input names, else as the picture is. */
  size: imageSize.optional(),
  /**
   * With both sides in `size`: `stretch` (default) to them; `cover`: fill them and cut what is beyond, in the middle;
   * `contain`: fit into them and fill the rest with `padColor`.
   */
  fit: z.enum(['stretch', 'cover', 'contain']).optional(),
  /** Both sides, after `size`, to the nearest multiple. */
  multipleOf: z.number().int().min(1).max(1024).optional(),
  /** A picture that is smaller already keeps its size. */
  onlyShrink: z.boolean().optional(),
  /** Default bilinear. */
  resample: z.enum(imageFilters).optional(),
  /** Default true, as in Pillow: the filter widens with the factor. False: as OpenCV does it; nearest and bilinear only. */
  antialias: z.boolean().optional(),
  /** The middle of the resized picture; where it is smaller, `padColor` around. */
  centerCrop: imageBox.optional(),
  /** Where the middle lies between two pixels: `down` (default, Hugging Face), or `even` (torchvision). */
  cropRounding: z.enum(['down', 'even']).optional(),
  /** At least this size, filled with `padColor`; after `centerCrop`. */
  pad: imageBox.optional(),
  /** Where the picture stands in what is filled: default `center` for `contain`, `start` (top left) for `pad`. */
  padAt: z.enum(['center', 'start']).optional(),
  /** Levels 0 to 255 ahead of rescaling; `zero` (default): zeros in the tensor. */
  padColor: z.union([z.literal('zero'), colour]).optional(),
  /** Default 1/255; 1 for UINT8. */
  rescaleFactor: z.number().positive().optional(),
  /** After rescaling, in the order of channels that the model sees; default 0. */
  imageMean: perChannel.optional(),
  /** Default 1. */
  imageStd: perChannel.optional(),
  /** Default rgb; gray is one channel, by ITU-R 601. */
  channels: z.enum(['rgb', 'bgr', 'gray']).optional(),
  /** Default: where the model's input has its 1 or 3, else nchw. */
  layout: z.enum(['nchw', 'nhwc']).optional(),
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

/** Options of `decodeImage`. */
export const decodeOptions = z.strictObject(imageLimits);
export type DecodeOptions = z.input<typeof decodeOptions>;

/** Options of `imageTensor`: limits apart. */
export const preparationOptions = z
  .strictObject({ ...imagePreparation, datatype: z.enum(['FP32', 'FP16', 'UINT8']).optional() })
  .refine(({ imageStd }) => positive(imageStd), stdRule)
  .refine(plainFilter, filterRule);
export type PreparationOptions = z.output<typeof preparationOptions>;

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
