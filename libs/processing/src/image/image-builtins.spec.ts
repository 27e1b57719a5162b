import { imageRankingReply, type Signature, type TensorSpec, type Tensors, tasks } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { filesOf, quietCall } from '../call.fake.ts';
import { loadProcessing } from '../loaded-processing.ts';
import { asFloat32, float16, float32 } from '../tensor.ts';
import { pictureFile } from './picture.fake.ts';

const fp32 = (name: string, ...shape: number[]): TensorSpec => ({ name, datatype: 'FP32', shape });
const pixels = fp32('pixel_values', -1, 3, 8, 8);
const photo = pictureFile('photo.jpg').toString('base64');
const config = { 'config.json': JSON.stringify({ id2label: { 0: 'cat', 1: 'dog', 2: 'perch' } }) };

interface Wish {
  options?: Record<string, unknown>;
  signature?: Partial<Signature>;
  files?: Record<string, string>;
  maxBatchSize?: number;
}
const load = (builtin: string, wish: Wish = {}) =>
  loadProcessing({
    builtin,
    options: wish.options,
    files: filesOf(wish.files ?? {}),
    signature: { inputs: [pixels], outputs: [fp32('logits', -1, 3)], ...wish.signature },
    maxBatchSize: wish.maxBatchSize ?? 4,
  });
type Loaded = Awaited<ReturnType<typeof load>>;

async function ask(loaded: Loaded, body: unknown, answer: Tensors, type = 'application/json'): Promise<unknown> {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const { carry } = await loaded.preprocess(bytes, type, quietCall);
  const reply = await loaded.postprocess(answer, carry, quietCall);
  return Buffer.isBuffer(reply) ? JSON.parse(String(reply)) : reply;
}
const refused = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) });

describe('image-classification', () => {
  const logits = { logits: float32([1, 1 + Math.log(2), 1], [1, 3]) };
  const quarter = expect.closeTo(0.25, 6);

  it('answers the likeliest labels, of one picture or of a list', async () => {
    const loaded = await load('image-classification', { files: config, options: { topK: 2 } });
    const wanted = {
      label: 'dog',
      score: expect.closeTo(0.5, 6),
      scores: [
        { label: 'dog', score: expect.closeTo(0.5, 6) },
        { label: 'cat', score: quarter },
      ],
    };
    const reply = await ask(loaded, { image: photo }, logits);
    expect(reply).toEqual(wanted);
    expect(imageRankingReply.safeParse(reply).success).toBe(true);
    expect(await ask(loaded, pictureFile('photo.jpg'), logits, 'image/jpeg')).toEqual(wanted);
    const two = { logits: float32([0, 9, 0, 0, 0, 9], [2, 3]) };
    expect(await ask(loaded, { images: [photo, { b64: photo }] }, two)).toMatchObject({
      results: [{ label: 'dog' }, { label: 'perch' }],
    });
  });

  it('takes a file of a multipart request', async () => {
    const loaded = await load('image-classification', { files: config });
    const form = new FormData();
    form.set('image', new Blob([pictureFile('plain.png')]), 'whatever.txt');
    const request = new Response(form);
    const type = request.headers.get('content-type')!;
    const { inputs } = await loaded.preprocess(Buffer.from(await request.arrayBuffer()), type, quietCall);
    expect(inputs['pixel_values']!.shape).toEqual([1, 3, 8, 8]);
  });

  it.each<[Record<string, unknown>, Record<string, string>, string]>([
    [{ labels: ['a', 'b', 'c'] }, config, 'b'],
    [{}, { 'labels.txt': 'x\ny\nz\n' }, 'y'],
    [{}, {}, '1'],
  ])('names classes by %j and %j', async (options, files, label) => {
    const loaded = await load('image-classification', { options, files });
    expect(await ask(loaded, { image: photo }, logits)).toMatchObject({ label });
  });

  it('reads sigmoid, plain and FP16 numbers', async () => {
    const row = { logits: float16([0, 2, -2], [1, 3]) };
    const scores = async (how: string) =>
      ((await ask(await load('image-classification', { options: { scores: how } }), { image: photo }, row)) as { scores: { score: number }[] }).scores.map(({ score }) => score); // biome-ignore format: one row
    expect(await scores('none')).toEqual([2, 0, -2]);
    expect(await scores('sigmoid')).toEqual([0.881, 0.5, 0.119].map((value) => expect.closeTo(value, 3)));
  });

  it('prepares pictures as the version says, and as options say ahead of it', async () => {
    const files = {
      'preprocessor_config.json': JSON.stringify({
        size: 8,
        resample: 0,
        image_mean: [0.5, 0.5, 0.5],
        image_std: [0.5, 0.5, 0.5],
      }),
    };
    const first = async (options: Record<string, unknown>) => {
      const loaded = await load('image-classification', { files, options });
      const { inputs } = await loaded.preprocess(pictureFile('dot.png'), 'image/png', quietCall);
      return asFloat32(inputs['pixel_values']!)[0];
    };
    expect(await first({})).toBeCloseTo((10 / 255 - 0.5) / 0.5, 6);
    expect(await first({ imageMean: [0] })).toBeCloseTo(10 / 255 / 0.5, 6);
    expect(await first({ config: 'other.json' })).toBeCloseTo(10 / 255, 6);
  });

  it.each<[string, Wish, string]>([
    ['no input of pictures', { signature: { inputs: [fp32('x', -1, 4)] } }, 'none of the inputs x takes pictures'],
    ['two of them', { signature: { inputs: [pixels, { ...pixels, name: 'other' }] } }, 'name one of the inputs pixel_values, other'],
    ['another input', { signature: { inputs: [pixels, fp32('x', -1, 4)] } }, 'the model wants input "x"'],
    ['an unknown output', { options: { output: 'y' } }, 'no output "y"; it has logits'],
    ['several outputs', { signature: { outputs: [fp32('a', -1, 3), fp32('b', -1, 3)] } }, 'name one of the outputs a, b'],
    ['labels of another model', { options: { labels: ['a'] } }, 'there are 1 labels, but output "logits" has 3 classes'],
    ['sides that the model does not take', { options: { size: { height: 9, width: 8 } } }, 'would become 8 x 9'],
    ['sides that depend on the picture', { options: { size: { shortestEdge: 8 } } }, 'would become'],
    ['gray for a model of three channels', { options: { channels: 'gray' } }, 'has 3 channels, but options.channels is gray'],
    ['a broken preprocessor_config.json', { files: { 'preprocessor_config.json': '{' } }, 'not valid JSON'],
  ])('refuses %s when it is loaded', async (_what, wish, message) => { // biome-ignore format: rows of a table
    await expect(load('image-classification', wish)).rejects.toThrow(refused('invalid', message));
  }); // biome-ignore format: rows of a table

  it.each<[string, unknown, string, string]>([
    ['no picture', {}, 'invalid', 'no field "image"'],
    ['a list', [photo], 'invalid', 'the body is a list'],
    ['two fields', { image: photo, images: [photo] }, 'invalid', 'image and images'],
    ['too many', { images: Array(5).fill(photo) }, 'invalid', 'has 5 pictures, wanted 1 to 4'],
    ['none of a list', { images: [] }, 'invalid', 'has 0 pictures'],
    ['a number in the list', { images: [photo, 5] }, 'invalid', 'field "images"[1] is a number'],
    ['a broken one in the list', { images: [photo, photo.slice(0, 4000)] }, 'invalid', 'field "images"[1] is a jpeg that is truncated'],
    ['another file', Buffer.from('GIF89a'), 'unsupported_media_type', 'the body is a GIF'],
  ])('refuses %s in a request', async (_what, body, code, message) => { // biome-ignore format: rows of a table
    const loaded = await load('image-classification');
    const type = Buffer.isBuffer(body) ? 'application/octet-stream' : undefined;
    await expect(ask(loaded, body, logits, type)).rejects.toThrow(refused(code, message));
  }); // biome-ignore format: rows of a table

  it('says so where the model answers something else', async () => {
    const loaded = await load('image-classification');
    await expect(ask(loaded, { image: photo }, {})).rejects.toThrow(refused('upstream', 'left out output "logits"'));
    const wrong = { logits: float32([1, 2], [2, 1]) };
    await expect(ask(loaded, { image: photo }, wrong)).rejects.toThrow(refused('upstream', 'wanted 1 rows'));
  });
});

describe('image-embedding', () => {
  const withOutput = (...shape: number[]): Wish => ({ signature: { outputs: [fp32('image_embeds', ...shape)] } });

  it.each<[number[], number[], Record<string, unknown>, number[]]>([
    [[-1, 2], [1, 2], {}, [0.6, 0.8]],
    [[-1, 2], [1, 2], { normalize: false }, [3, 4]],
    [[-1, 2, 2], [1, 2, 2], { normalize: false }, [3, 4]],
    [[-1, 2, 2], [1, 2, 2], { pooling: 'mean', normalize: false }, [4, 5]],
    [[-1, 2, 1, 2], [1, 2, 1, 2], { normalize: false }, [3.5, 5.5]],
  ])('of an output %j', async (declared, shape, options, wanted) => {
    const loaded = await load('image-embedding', { ...withOutput(...declared), options });
    const values = [3, 4, 5, 6].slice(
      0,
      shape.reduce((a, b) => a * b, 1),
    );
    const reply = (await ask(loaded, { image: photo }, { image_embeds: float32(values, shape) })) as { embedding: number[] }; // biome-ignore format: one row
    expect(reply.embedding).toEqual(wanted.map((value) => expect.closeTo(value, 6)));
  });

  it('answers a list for a list, in base64 where wanted, in the field that is wanted', async () => {
    const wish = { ...withOutput(-1, 1), options: { encoding: 'base64', outputField: 'vectors', normalize: false } };
    const reply = await ask(await load('image-embedding', wish), { images: [photo, photo] }, { image_embeds: float32([1, 2], [2, 1]) }); // biome-ignore format: one row
    expect(reply).toEqual({ vectors: ['AACAPw==', 'AAAAQA=='] });
    const lists = await ask(await load('image-embedding', withOutput(-1, 1)), { images: [photo] }, { image_embeds: float32([2], [1, 1]) }); // biome-ignore format: one row
    expect(lists).toEqual({ embeddings: [[1]] });
    expect(tasks['image-embedding']!.reply.safeParse(lists).success).toBe(true);
  });

  it('takes one picture for a model without a batch dimension', async () => {
    const signature = { inputs: [fp32('x', 8, 8, 3)], outputs: [fp32('y', 2)] };
    const loaded = await load('image-embedding', { signature, maxBatchSize: 0 });
    const { inputs } = await loaded.preprocess(pictureFile('wide.png'), 'image/png', quietCall);
    expect(inputs['x']!.shape).toEqual([8, 8, 3]);
    expect(await ask(loaded, { image: photo }, { y: float32([0, 2], [2]) })).toEqual({ embedding: [0, 1] });
    await expect(ask(loaded, { images: [photo, photo] }, {})).rejects.toThrow('wanted exactly 1');
  });
});
