import { AppError, type ImageFilter, type ImageSize, type PreparationOptions } from '@perch/contracts/plain';

/** Options of preparation, and how transparency is read. */
export type PreprocessorOptions = PreparationOptions & { alpha?: 'drop' };

type Words = Record<string, unknown>;

/** PIL.Image.Resampling. */
const filters: Record<string, ImageFilter> = {
  0: 'nearest',
  1: 'lanczos',
  2: 'bilinear',
  3: 'bicubic',
  4: 'box',
  5: 'hamming',
};

/** Words that change the numbers and are not known here: better refused than left out. */
const notKnown = [
  'do_thumbnail', 'do_align_long_axis', 'do_crop_margin', 'do_image_splitting', 'keep_aspect_ratio', 'size_divisor',
  'do_color_quantize', 'do_reduce_labels',
]; // biome-ignore format: one row reads better

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const isWords = (value: unknown): value is Words =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function refuse(word: string, wanted: string): never {
  throw new AppError('invalid', `preprocessor_config.json: ${word} ${wanted}`);
}

/** A number is a square, or the shortest edge where the processor cuts the middle out afterwards. */
function readSize(words: Words, word: string, square: boolean): ImageSize | undefined {
  const size = words[word];
  if (size === undefined || size === null) return undefined;
  if (isNumber(size)) {
    if (isNumber(words['max_size'])) return { shortestEdge: size, longestEdge: words['max_size'] };
    return square ? { height: size, width: size } : { shortestEdge: size };
  }
  if (Array.isArray(size) && size.length === 2 && size.every(isNumber)) return { height: size[0]!, width: size[1]! };
  if (isWords(size)) {
    const { height, width, shortest_edge: shortest, longest_edge: longest } = size;
    if (isNumber(height) && isNumber(width)) return { height, width };
    if (isNumber(shortest)) return { shortestEdge: shortest, ...(isNumber(longest) && { longestEdge: longest }) };
    if (isNumber(longest)) return { longestEdge: longest };
  }
  return refuse(word, 'is none of a number, {height, width}, {shortest_edge, longest_edge}');
}

function readFilter(words: Words, kind: string): ImageFilter {
  const given = words['resample'] ?? (/clip|convnext|siglip/i.test(kind) ? 3 : 2);
  const filter = filters[String(given)] ?? Object.values(filters).find((name) => name === given);
  return filter ?? refuse('resample', 'is none of 0 to 5 (PIL.Image.Resampling)');
}

/** ConvNextImageProcessor: below 384 the middle of a picture that is 1 / crop_pct as large, else stretched. */
function cropShare(size: ImageSize | undefined, words: Words): Partial<PreparationOptions> | undefined {
  if (!size) return undefined;
  const edge = 'shortestEdge' in size ? size.shortestEdge : 'width' in size ? size.width : undefined;
  if (edge === undefined) return undefined;
  const share = isNumber(words['crop_pct']) ? words['crop_pct'] : 224 / 256;
  const box = { height: edge, width: edge };
  return edge >= 384 ? { size: box } : { size: { shortestEdge: Math.trunc(edge / share) }, centerCrop: box };
}

function readGeometry(words: Words, kind: string): Partial<PreparationOptions> {
  const crops = words['do_center_crop'] === true;
  const size =
    words['do_resize'] === false ? undefined : readSize(words, 'size', !crops && !/clip|convnext|detr/i.test(kind));
  const byShare = isNumber(words['crop_pct']) || /convnext/i.test(kind) ? cropShare(size, words) : undefined;
  if (byShare) return { ...byShare, resample: readFilter(words, kind) };
  const cropSize = crops ? (readSize(words, 'crop_size', true) ?? size) : undefined;
  if (cropSize && !('width' in cropSize)) refuse('crop_size', 'does not name both sides');
  const pad = words['do_pad'] === true ? readSize(words, 'pad_size', true) : undefined;
  if (pad && !('width' in pad)) refuse('pad_size', 'does not name both sides');
  return {
    ...(size && { size, resample: readFilter(words, kind) }),
    ...(cropSize && 'width' in cropSize && { centerCrop: cropSize }),
    ...(pad && 'width' in pad && { pad }),
  };
}

function readNumbers(words: Words, word: string): number[] {
  const given = words[word];
  const list = isNumber(given) ? [given] : given;
  if (Array.isArray(list) && (list.length === 1 || list.length === 3) && list.every(isNumber)) return list;
  return refuse(word, 'is not a list of 1 or 3 numbers');
}

/** `rescale_offset` takes 1 away ahead of the mean; `include_top` (EfficientNet) divides by the deviation once more. */
function readLevels(words: Words): Partial<PreparationOptions> {
  const factor =
    words['do_rescale'] === false ? 1 : isNumber(words['rescale_factor']) ? words['rescale_factor'] : 1 / 255;
  const normalised = words['do_normalize'] !== false && words['image_mean'] !== undefined;
  const offset = words['rescale_offset'] === true ? 1 : 0;
  const mean = normalised ? readNumbers(words, 'image_mean') : offset ? [0] : undefined;
  const std = normalised ? readNumbers(words, 'image_std') : undefined;
  return {
    rescaleFactor: factor,
    ...(mean && { imageMean: mean.map((value) => value + offset) }),
    ...(std && { imageStd: words['include_top'] === true ? std.map((value) => value * value) : std }),
  };
}

/**
 * Options of what a preprocessor_config.json of Hugging Face asks for: `size`, `crop_size`, `crop_pct`, `resample`,
 * `rescale_factor`, `image_mean`, `image_std`, `pad_size` and their `do_…`, `do_convert_rgb`, `do_flip_channel_order`.
 * Throws `invalid` for words that change the numbers and are not known here.
 */
export function readPreprocessorConfig(config: unknown): PreprocessorOptions {
  if (!isWords(config)) throw new AppError('invalid', 'preprocessor_config.json is no JSON object');
  const nested = config['image_processor']; // processor_config.json of newer folders
  const words = isWords(nested) ? nested : config;
  const kind = String(words['image_processor_type'] ?? words['feature_extractor_type'] ?? '');
  for (const word of notKnown)
    if (words[word] !== undefined && words[word] !== null && words[word] !== false && words[word] !== 0)
      refuse(word, 'is not supported; leave the file out and name options, or write a module');
  return {
    ...readGeometry(words, kind),
    ...readLevels(words),
    ...(words['do_flip_channel_order'] === true && { channels: 'bgr' }),
    ...(words['do_convert_rgb'] === true && { alpha: 'drop' }),
  };
}
