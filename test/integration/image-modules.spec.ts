/** A module that decodes, cuts and encodes pictures, wherever it runs: sharp is native, and is loaded in each of them. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { BoundModule } from '@perch/contracts';
import { type CallContext } from '@perch/processing';
import { ModuleHost } from '@perch/processing/host';
import { afterAll, describe, expect, it } from 'vitest';

const bundle = Buffer.from(`
import { crop, decodeImage, defineProcessing, encodeImage, imageTensor } from '@perch/processing';
export default defineProcessing({
  async preprocess(body) {
    if (body.hang) for (;;) {}
    const picture = await decodeImage(body.image);
    const corner = crop(picture, { left: 10, top: 20, width: 50, height: 40 });
    const again = await decodeImage(await encodeImage(corner, { format: 'png' }));
    const x = imageTensor(picture, { size: { width: 8, height: 6 }, imageMean: [0.5], imageStd: [0.5] });
    return { inputs: { x }, carry: again.data.every((level, at) => level === corner.data[at]) };
  },
  process: (inputs) => inputs,
  postprocess: ({ x }, { carry }) => ({ shape: x.shape, same: carry }),
});`);
const digest = createHash('sha256').update(bundle).digest('hex');
const module: BoundModule = {
  name: 'pictures',
  number: 1,
  digest,
  facts: { hooks: ['preprocess', 'process', 'postprocess'], body: 'json' },
  files: [{ path: 'module.mjs', sha256: digest, size: bundle.length }],
};
const photo = readFileSync(new URL('../../libs/processing/reference/images/pictures/photo.jpg', import.meta.url));
const image = photo.toString('base64');
const nothing = () => Promise.reject(new Error('not asked'));
const ctx = (limitMs: number): CallContext => {
  const end = performance.now() + limitMs;
  return {
    ...{ requestId: 'r', endpoint: 'e', version: 1, headers: {}, state: {}, streams: false },
    signal: AbortSignal.timeout(limitMs),
    remainingMs: () => Math.max(0, end - performance.now()),
    ...{ log() {}, observe() {}, count() {}, flag() {}, infer: nothing, serve: nothing, stream: nothing },
  };
};

describe('modules of pictures', () => {
  const host = new ModuleHost();
  afterAll(() => host.close());

  it.each(['worker', 'process'] as const)('run in a %s', async (isolation) => {
    const files = { list: () => ['module.mjs'], read: async () => bundle };
    const signature = { inputs: [], outputs: [] };
    const loaded = await host.load({ module, isolation, options: {}, files, signature, maxBatchSize: 0 });
    const ask = async (body: object, limitMs = 30_000) => {
      const call = ctx(limitMs);
      const { inputs, carry } = await loaded.preprocess(Buffer.from(JSON.stringify(body)), undefined, call);
      const reply = await loaded.postprocess(await loaded.process!(inputs, carry, call), carry, call);
      return Buffer.isBuffer(reply) ? JSON.parse(String(reply)) : reply;
    };
    expect(await ask({ image })).toEqual({ shape: [1, 3, 6, 8], same: true });
    await expect(ask({ image: image.slice(0, 20_000) })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('truncated or damaged'),
    });
    // its thread or process is ended with pictures under way, and the next one decodes again
    const under = Array.from({ length: 8 }, () => ask({ image }).catch(() => undefined));
    await expect(ask({ hang: true }, 1_000)).rejects.toMatchObject({ code: expect.stringMatching(/timeout|module/) });
    await Promise.all(under);
    expect(await ask({ image })).toMatchObject({ same: true });
    await loaded.unload();
  });
});
