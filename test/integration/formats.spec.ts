import { type ManifestFile, sha256Hex, type Version, type VersionUpload } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { onnxModel, scaleModel } from '../support/onnx.ts';

let plane: TestControlPlane;
beforeAll(async () => {
  plane = await startTestControlPlane();
});
afterAll(() => plane.close());

interface Upload {
  number: number;
  /** Paths that had to be sent. */
  sent: string[];
}

async function send(model: string, files: Record<string, Uint8Array | string>, more: object = {}): Promise<Upload> {
  const bytes = new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)]));
  const listed: ManifestFile[] = [...bytes].map(([path, content]) => ({
    path,
    sha256: sha256Hex(content),
    size: content.length,
  }));
  const { body, status } = await plane.call<VersionUpload>('POST', `/api/v1/models/${model}/versions`, {
    files: listed,
    ...more,
  });
  expect(status).toBe(201);
  const sent: string[] = [];
  for (const blob of body.missing) {
    const { path } = listed.find(({ sha256 }) => sha256 === blob.sha256)!;
    const stored = await fetch(blob.url!, { method: 'PUT', body: bytes.get(path)!, headers: blob.headers });
    expect(stored.status).toBeLessThan(300);
    sent.push(path);
  }
  return { number: body.version.number, sent };
}

const complete = (model: string, number: number) =>
  plane.call<Version>('POST', `/api/v1/models/${model}/versions/${number}/complete`, {});

const config = (more = '') => `platform: "onnxruntime_onnx"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
${more}`;
/** `y = 2x` with a batch of one, as an export without dynamic_axes gives it. */
const fixedBatch = () =>
  onnxModel({
    inputs: [{ name: 'x', type: 'FP32', shape: [1, 4] }],
    outputs: [{ name: 'y', type: 'FP32', shape: [1, 4] }],
    nodes: [{ op: 'Add', inputs: ['x', 'x'], outputs: ['y'] }],
  });

describe('an upload with a configuration of its own', () => {
  it('is refused while its text is wrong, naming the place; then the text alone is sent again', async () => {
    const wrong = await send('p/typo', {
      '1/model.onnx': scaleModel(2),
      'config.pbtxt': config('dynamic_batchng { }'),
    });
    const refused = await complete('p/typo', wrong.number);
    expect(refused.status).toBe(400);
    expect(refused.body.code).toBe('invalid');
    expect(refused.body.detail).toContain(
      'config.pbtxt: line 5, column 1: ModelConfig has no field named "dynamic_batchng"',
    );
    expect(refused.body.errors).toEqual([
      { path: 'config.pbtxt', message: expect.stringContaining('line 5, column 1') },
    ]);
    const still = await plane.call<Version>('GET', `/api/v1/models/p/typo/versions/${wrong.number}`);
    expect(still.body.state).toBe('uploading');

    const right = await send('p/typo', {
      '1/model.onnx': scaleModel(2),
      'config.pbtxt': config('dynamic_batching { }'),
    });
    expect(right.sent).toEqual(['config.pbtxt']);
    expect((await complete('p/typo', right.number)).body).toMatchObject({
      state: 'draft',
      facts: { onnx: { '1/model.onnx': { opset: 13, ir: 8 } } },
    });
  });

  it.each<[string, Record<string, Uint8Array | string>, string]>([
    ["Triton's rules", { '1/model.onnx': scaleModel(2), 'config.pbtxt': config('dynamic_batching { preferred_batch_size: 16 }') }, 'preferred_batch_size 16 is not between 1 and max_batch_size 8'],
    ['files it names', { '1/model.onnx': scaleModel(2), 'config.pbtxt': config('default_model_filename: "net.onnx"') }, 'names net.onnx, which is not in the upload'],
    ['its graph', { '1/model.onnx': fixedBatch(), 'config.pbtxt': config() }, 'input "x": dimension 0 (batch) is fixed at 1 in the graph [1, 4] and max_batch_size above 0 wants it free: export it again with dynamic_axes={"x": {0: "batch"}}'],
    ['the text of each folder', {
      'enc/1/model.onnx': scaleModel(2), 'enc/config.pbtxt': config(), 'all/config.pbtxt': 'platform: "ensemble" ensemble_scheduling { }',
    }, 'all/config.pbtxt: ensemble_scheduling wants at least one step'],
  ])('is held to %s', async (what, files, words) => {
    const model = `p/held-${what.replace(/[^a-z]+/gi, '-').toLowerCase()}`;
    const { number } = await send(model, files);
    const refused = await complete(model, number);
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining(words)]);
  }); // biome-ignore format: one row a case

  it('tells what built its plans', async () => {
    const header = Buffer.alloc(64);
    header.write('ftrt', 0, 'latin1');
    Buffer.from([10, 3, 0, 26]).copy(header, 24);
    const { number } = await send('p/plan', { 'm.cc86.plan': header, 'other.plan': 'no plan at all' });
    expect((await complete('p/plan', number)).body.facts).toEqual({
      tensorrt: { 'm.cc86.plan': { version: '10.3.0' }, 'other.plan': { version: null } },
    });
  });
});

describe('an endpoint whose settings contradict the graph', () => {
  const spec = (name: string, engine: object) => ({ name, model: { project: 'p', name: 'fixed' }, engine });

  it('is refused when it is added or changed, and not where they agree', async () => {
    const { number } = await send('p/fixed', { 'model.onnx': fixedBatch() });
    await complete('p/fixed', number);
    await plane.call('POST', `/api/v1/models/p/fixed/versions/${number}/publish`, {});
    const refused = await plane.call('POST', '/api/v1/endpoints', spec('f/one', { maxBatchSize: 8 }));
    expect(refused.status).toBe(400);
    expect(refused.body.detail).toContain(
      `endpoint f/one: version ${number}: input "x": dimension 0 (batch) is fixed at 1`,
    );
    const free = { inputs: [{ name: 'x', type: 'FP32', dims: [-1, 4] }] };
    expect((await plane.call('POST', '/api/v1/endpoints', spec('f/one', free))).body.detail).toContain('fixed at 1');
    expect((await plane.call('POST', '/api/v1/endpoints', spec('f/one', {}))).status).toBe(201);
    const changed = await plane.call('PUT', '/api/v1/endpoints/f%2Fone', spec('f/one', { maxBatchSize: 8 }));
    expect(changed.status).toBe(400);
    const text = await plane.call('PUT', '/api/v1/endpoints/f%2Fone', spec('f/one', { config: 'max_batch_size: 2' }));
    expect([text.status, text.body.detail]).toEqual([400, expect.stringContaining('dimension 0 (batch)')]);
    const rules = spec('f/one', { config: 'metric_tags { key: "a b" value: "c" }' });
    const broken = await plane.call('PUT', '/api/v1/endpoints/f%2Fone', rules);
    expect([broken.status, broken.body.detail]).toEqual([400, expect.stringContaining("metric_tags 'a b'")]);
  });
});
