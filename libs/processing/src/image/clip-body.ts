import { AppError, type ClipOptions } from '@perch/contracts';
import { kindOf } from '../json-body.ts';
import { type Found, findImages } from './image-body.ts';

/** What a request asks for. `rank`: pictures against labels or captions. */
export interface ClipRequest {
  wish: 'rank' | 'images' | 'texts';
  images?: Found;
  /** Labels, captions, or texts to embed. */
  texts: string[];
  /** One text was sent, not a list. */
  singleText: boolean;
  /** What each text is put into; `['{}']` takes it as it is. */
  templates: string[];
}

const most = 1000;
const fields = { labels: ['labels', 'candidate_labels'], texts: ['text', 'texts', 'captions'] };

function texts(
  body: Record<string, unknown>,
  names: readonly string[],
): { name: string; list: string[]; single: boolean } | undefined {
  // biome-ignore format: one sentence
  const name = names.find((field) => Object.hasOwn(body, field));
  if (name === undefined) return undefined;
  const value = body[name];
  const list = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(list) || list.length === 0 || list.length > most)
    throw new AppError('invalid', `field "${name}" is ${kindOf(value)}, wanted a text or a list of 1 to ${most} texts`);
  const odd = list.findIndex((text) => typeof text !== 'string' || text.length > 8192);
  if (odd >= 0) throw new AppError('invalid', `${name}[${odd}] is ${kindOf(list[odd])}, wanted a text of at most 8192 characters`); // biome-ignore format: one sentence
  return { name, list: list as string[], single: typeof value === 'string' };
}

function templatesOf(body: Record<string, unknown>, options: ClipOptions): string[] {
  const given = texts(body, ['templates', 'template']);
  if (!given) return options.templates;
  const odd = given.list.findIndex((template) => template.split('{}').length !== 2);
  if (odd >= 0) throw new AppError('invalid', `${given.name}[${odd}] wants {} once, where the label goes`);
  return given.list;
}

/**
 * `{image, labels}`: labels put into templates; `{image, text}`: captions as they are; `{image}`: labels of the options,
 * or the picture's vector where there are none; `{text}`: vectors of texts. `images` and lists alike. Throws `invalid`.
 */
export function readClipRequest(body: unknown, options: ClipOptions): ClipRequest {
  const images = findImages(body, options.imageField);
  const named = Buffer.isBuffer(body) ? {} : (body as Record<string, unknown>);
  const labels = texts(named, fields.labels);
  const captions = texts(named, options.textField ? [options.textField] : fields.texts);
  if (labels && captions)
    throw new AppError('invalid', `the body has ${labels.name} and ${captions.name}, wanted one of them`);
  if (!images) {
    if (captions) return { wish: 'texts', texts: captions.list, singleText: captions.single, templates: ['{}'] };
    const wanted = options.imageField ?? 'image';
    throw new AppError('invalid', `the body has no field "${wanted}" and no "text", wanted {"${wanted}": "<base64>", "labels": ["…"]}, {"${wanted}": …} or {"text": …}`); // biome-ignore format: one sentence
  }
  if (images.values.length === 0 || images.values.length > most)
    throw new AppError('invalid', `${images.name} has ${images.values.length} pictures, wanted 1 to ${most}`);
  if (captions) return { wish: 'rank', images, texts: captions.list, singleText: false, templates: ['{}'] };
  const list = labels?.list ?? options.labels;
  if (!list) return { wish: 'images', images, texts: [], singleText: false, templates: [] };
  return { wish: 'rank', images, texts: list, singleText: false, templates: templatesOf(named, options) };
}
