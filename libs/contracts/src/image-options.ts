export interface ImageBox {
  height: number;
  width: number;
}

/** Both sides; or one side, the other one by the picture's own proportions. Sides are 1 to 16,384. */
export type ImageSize =
  | ImageBox
  | { shortestEdge: number; longestEdge?: number }
  | { longestEdge: number }
  | { height: number; maxWidth?: number };

/** Filters of Pillow by their names there. */
export const imageFilters = ['nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos'] as const;
export type ImageFilter = (typeof imageFilters)[number];

/** What an option may be, where it is one of several words. */
export const imageChoices = {
  animated: ['refuse', 'first'],
  alpha: ['flatten', 'drop'],
  fit: ['stretch', 'cover', 'contain'],
  cropRounding: ['down', 'even'],
  padAt: ['center', 'start'],
  channels: ['rgb', 'bgr', 'gray'],
  layout: ['nchw', 'nhwc'],
  datatype: ['FP32', 'FP16', 'UINT8'],
} as const;

type Choice<Name extends keyof typeof imageChoices> = (typeof imageChoices)[Name][number];
type Colour = [number, number, number];

/** What is read of a picture, and how far. Anything beyond a limit is refused by its header, before it is decoded. */
export interface DecodeOptions {
  /** Of one picture's file; default 20 MiB. */
  maxBytes?: number;
  /** Width times height; default 40,000,000. */
  maxPixels?: number;
  /** Of decoding one picture, in whole seconds; default 10. */
  decodeSeconds?: number;
  /** What happens to a picture of several frames; default refuse. */
  animated?: Choice<'animated'>;
  /** Turn the picture as its EXIF orientation says; default true. */
  orient?: boolean;
  /** Transparent pixels: laid over `background` (default), or their colour taken as it is (as Pillow's `convert('RGB')` does). */
  alpha?: Choice<'alpha'>;
  /** Default white. */
  background?: Colour;
}

export const imageDefaults: Required<DecodeOptions> = {
  maxBytes: 20_971_520,
  maxPixels: 40_000_000,
  decodeSeconds: 10,
  animated: 'refuse',
  orient: true,
  alpha: 'flatten',
  background: [255, 255, 255],
};

/** How a picture becomes numbers. Left out: as the version's preprocessor_config.json says, else as stands here. */
export interface PreparationOptions {
  /** Default: the sides that the model's input names, else as the picture is. */
  size?: ImageSize;
  /**
   * With both sides in `size`: `stretch` (default) to them; `cover`: fill them and cut what is beyond, in the middle;
   * `contain`: fit into them and fill the rest with `padColor`.
   */
  fit?: Choice<'fit'>;
  /** Both sides, after `size`, to the nearest multiple. */
  multipleOf?: number;
  /** A picture that is smaller already keeps its size. */
  onlyShrink?: boolean;
  /** Default bilinear. */
  resample?: ImageFilter;
  /** Default true, as in Pillow: the filter widens with the factor. False: as OpenCV does it; nearest and bilinear only. */
  antialias?: boolean;
  /** The middle of the resized picture; where it is smaller, `padColor` around. */
  centerCrop?: ImageBox;
  /** Where the middle lies between two pixels: `down` (default, Hugging Face), or `even` (torchvision). */
  cropRounding?: Choice<'cropRounding'>;
  /** At least this size, filled with `padColor`; after `centerCrop`. */
  pad?: ImageBox;
  /** Where the picture stands in what is filled: default `center` for `contain`, `start` (top left) for `pad`. */
  padAt?: Choice<'padAt'>;
  /** Levels 0 to 255 ahead of rescaling; `zero` (default): zeros in the tensor. */
  padColor?: 'zero' | Colour;
  /** Default 1/255; 1 for UINT8. */
  rescaleFactor?: number;
  /** After rescaling, in the order of channels that the model sees; default 0. One number, or three. */
  imageMean?: number[];
  /** Default 1. */
  imageStd?: number[];
  /** Default rgb; gray is one channel, by ITU-R 601. */
  channels?: Choice<'channels'>;
  /** Default: where the model's input has its 1 or 3, else nchw. */
  layout?: Choice<'layout'>;
  /** Default FP32. */
  datatype?: Choice<'datatype'>;
}
