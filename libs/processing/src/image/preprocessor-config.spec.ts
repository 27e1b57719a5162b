import { describe, expect, it } from 'vitest';
import { readPreprocessorConfig } from './preprocessor-config.ts';

const square = (side: number) => ({ height: side, width: side });

describe('preprocessor_config.json', () => {
  it.each<[string, object, object]>([
    ['a number as a square', { size: 384, resample: 3 }, { size: square(384), resample: 'bicubic' }],
    ['a number as shortest edge ahead of a crop', { size: 224, do_center_crop: true, crop_size: 224 }, { size: { shortestEdge: 224 }, centerCrop: square(224) }],
    ['a number of CLIP', { feature_extractor_type: 'CLIPFeatureExtractor', size: 224 }, { size: { shortestEdge: 224 }, resample: 'bicubic' }],
    ['max_size', { size: 800, max_size: 1333, resample: 2 }, { size: { shortestEdge: 800, longestEdge: 1333 } }],
    ['crop_pct', { size: { shortest_edge: 224 }, crop_pct: 0.875 }, { size: { shortestEdge: 256 }, centerCrop: square(224) }],
    ['crop_pct above 384', { size: { shortest_edge: 384 }, crop_pct: 0.875 }, { size: square(384) }],
    ['names of filters', { size: 8, resample: 'lanczos' }, { resample: 'lanczos' }],
    ['no resizing', { do_resize: false, size: 8, do_center_crop: true, crop_size: square(4) }, { centerCrop: square(4) }],
    ['no rescaling', { do_rescale: false }, { rescaleFactor: 1 }],
    ['no normalising', { do_normalize: false, image_mean: [1], image_std: [1] }, { rescaleFactor: 1 / 255 }],
    ['an offset', { rescale_factor: 1 / 127.5, rescale_offset: true }, { rescaleFactor: 1 / 127.5, imageMean: [1] }],
    ['channels the other way round', { do_flip_channel_order: true }, { channels: 'bgr' }],
    ['convert_rgb', { do_convert_rgb: true }, { alpha: 'drop' }],
    ['filling', { do_pad: true, pad_size: square(640) }, { pad: square(640) }],
    ['a processor_config.json', { image_processor: { size: 8 } }, { size: square(8) }],
  ])('is read with %s', (_what, config, wanted) => { // biome-ignore format: rows of a table
    expect(readPreprocessorConfig(config)).toMatchObject(wanted);
  }); // biome-ignore format: rows of a table

  it.each<[unknown, string]>([
    [[], 'is no JSON object'],
    [{ size: 'large' }, 'size is none of'],
    [{ size: 8, resample: 9 }, 'resample is none of 0 to 5'],
    [{ image_mean: [1, 2], image_std: [1] }, 'image_mean is not a list of 1 or 3 numbers'],
    [{ image_mean: [1] }, 'image_std is not a list'],
    [{ do_align_long_axis: true }, 'do_align_long_axis is not supported'],
    [{ size_divisor: 32 }, 'size_divisor is not supported'],
    [{ do_center_crop: true, size: { shortest_edge: 4 } }, 'crop_size does not name both sides'],
  ])('is refused: %j', (config, message) => {
    expect(() => readPreprocessorConfig(config)).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) }),
    );
  });
});
