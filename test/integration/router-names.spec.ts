import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route } from '../../bench/control-stub.mjs';
import { floats } from '../support/onnx.ts';
import { type ModelServer, startEngine } from '../support/real-triton.ts';
import { loadScale, RouterStand, scaleTarget } from './router-stand.ts';

const rows = { x: [[1, 2, 3, 4]] };
const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }];
const turns = 40;

/** Two servers that hold one target under different names: the answer tells which one gave it. */
describe.each(['http', 'grpc'])('what a server calls a model, over %s', (transport) => {
  let first: ModelServer;
  let second: ModelServer;
  let stand: RouterStand;
  beforeAll(async () => {
    [first, second] = await Promise.all([startEngine(), startEngine()]);
    await loadScale(first, 'scale-plan', 2);
    await loadScale(second, 'scale-onnx', 3);
    await loadScale(first, 'resnet', 5, 7);
    await loadScale(second, 'resnet', 5, 7);
    stand = await RouterStand.start({ PERCH_TRITON_TRANSPORT: transport });
    const both = scaleTarget(1, ['a', 'b'], { tritonModel: 'scale-plan', models: { b: 'scale-onnx' } });
    const version = (number: number) =>
      scaleTarget(number, ['a', 'b'], { deployment: `r${number}`, tritonModel: 'resnet', tritonVersion: `${number}` });
    await stand.publish({
      servers: { a: { http: first.http, grpc: first.grpc }, b: { http: second.http, grpc: second.grpc } },
      endpoints: {
        formats: route([both]),
        resnet: route([version(2), version(1)], {
          arms: [
            { deployment: 'r2', share: 0.5 },
            { deployment: 'r1', share: 0.5 },
          ],
        }),
      },
    });
  });
  afterAll(async () => {
    await stand?.stop();
    await Promise.all([first?.remove(), second?.remove()]);
  });

  it('asks each server for its own name of the model', async () => {
    const answers = await Promise.all(Array.from({ length: turns }, () => stand.post('/serve/formats', rows)));
    expect(new Set(answers.map(({ json }) => json.y[0][0]))).toEqual(new Set([2, 3]));
  });

  it('asks for the version of the target, and shows the version of the endpoint', async () => {
    const answers = await Promise.all(Array.from({ length: turns }, () => stand.post('/serve/resnet', rows)));
    const seen = answers.map(({ json, headers }) => `${headers.get('x-perch-version')}: ${json.y[0][0]}`);
    expect(new Set(seen)).toEqual(new Set(['1: 5', '2: 7']));
    expect((await stand.post('/serve/resnet/1', rows)).json).toEqual({ y: [[5, 10, 15, 20]] });
  });

  it('does the same for /v2, and names nothing of the server', async () => {
    for (let turn = 0; turn < turns; turn += 1) {
      const { json, text } = await stand.post('/v2/models/formats/infer', { inputs });
      expect(json).toMatchObject({ model_name: 'formats', model_version: '1' });
      expect(text).not.toMatch(/scale-/);
      const pinned = await stand.post('/v2/models/resnet/versions/1/infer', { inputs });
      expect(pinned.json).toMatchObject({
        model_name: 'resnet',
        model_version: '1',
        outputs: [{ data: [5, 10, 15, 20] }],
      });
      const config = await stand.send('/v2/models/formats/config');
      expect(config.json.name).toBe('formats');
    }
    const stats = await stand.send('/v2/models/resnet/versions/1/stats');
    expect(stats.json.model_stats.map(({ name, version }: Record<string, string>) => [name, version])).toEqual([
      ['resnet', '1'],
    ]);
  });

  it('passes binary tensors of either server on', async () => {
    const json = JSON.stringify({
      inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], parameters: { binary_data_size: 16 } }],
      outputs: [{ name: 'y', parameters: { binary_data: true } }],
    });
    const headers = { 'inference-header-content-length': `${json.length}`, 'content-type': 'application/octet-stream' };
    const body = Buffer.concat([Buffer.from(json), floats(1, 2, 3, 4)]);
    const seen = new Set<number>();
    for (let turn = 0; turn < turns; turn += 1) {
      const response = await fetch(`${stand.router.address}/v2/models/formats/infer`, {
        method: 'POST',
        headers,
        body,
      });
      const bytes = Buffer.from(await response.arrayBuffer());
      const length = Number(response.headers.get('inference-header-content-length'));
      expect(JSON.parse(bytes.toString('utf8', 0, length))).toMatchObject({
        model_name: 'formats',
        model_version: '1',
      });
      seen.add(bytes.readFloatLE(length));
    }
    expect(seen).toEqual(new Set([2, 3]));
  });

  it('says nothing of the server’s names in errors', async () => {
    for (let turn = 0; turn < turns; turn += 1) {
      const answer = await stand.post('/serve/formats', { x: [[1, 2, 3]] });
      expect([answer.status, answer.text.includes('scale-')]).toEqual([400, false]);
    }
  });
});
