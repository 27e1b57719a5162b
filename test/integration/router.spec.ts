import { sha256Hex } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route } from '../../bench/control-stub.mjs';
import { floats } from '../support/onnx.ts';
import { type ModelServer, startEngine } from '../support/real-triton.ts';
import { loadScale, RouterStand, scaleTarget } from './router-stand.ts';

const rows = { x: [[1, 2, 3, 4]] };
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
const key = (secret: string, endpoints: string[] = []) => ({ hash: sha256Hex(secret), endpoints });

describe('the router in front of the embedded engine', () => {
  let engine: ModelServer;
  let stand: RouterStand;
  beforeAll(async () => {
    engine = await startEngine();
    await Promise.all([loadScale(engine, 'scale-v1', 1), loadScale(engine, 'scale-v2', 2)]);
    stand = await RouterStand.start();
    expect((await stand.post('/serve/text/scale', rows)).status).toBe(503);
    const both = (of = '') => [2, 1].map((version) => scaleTarget(version, ['a'], { deployment: `${of}d${version}` }));
    await stand.publish({
      servers: { a: { http: engine.http, grpc: engine.grpc } },
      keys: { k1: key('all'), k2: key('text-only', ['text/*']), k3: key('other', ['other']) },
      endpoints: {
        'text/scale': route(both()),
        'text/scale/7': route([scaleTarget(1, ['a'], { deployment: 'seven' })]),
        locked: route(both('l'), { access: 'key' }),
        'text/locked': route(both('tl'), { access: 'key' }),
        small: route(both('s'), { maxBodyBytes: 100 }),
      },
    });
  });
  afterAll(async () => {
    await stand?.stop();
    await engine?.remove();
  });

  describe('/serve', () => {
    it('answers through processing, and says who answered', async () => {
      const { status, json, headers } = await stand.post('/serve/text/scale', rows);
      expect({ status, json }).toEqual({ status: 200, json: { y: [[2, 4, 6, 8]] } });
      expect(headers.get('x-perch-version')).toBe('2');
      expect(headers.get('x-perch-arm')).toBe('d2');
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f]{12}-/);
    });

    it('pins a version by path and by header, and keeps the client’s request id', async () => {
      const byPath = await stand.post('/serve/text/scale/1', rows, { 'x-request-id': 'mine-1' });
      expect(byPath.json).toEqual({ y: [[1, 2, 3, 4]] });
      expect(byPath.headers.get('x-request-id')).toBe('mine-1');
      expect((await stand.post('/serve/text/scale', rows, { 'x-perch-version': '1' })).json.y[0][1]).toBe(2);
      const both = await stand.post('/serve/text/scale/1', rows, { 'x-perch-version': '2' });
      expect([both.status, both.json.error.message]).toEqual([400, expect.stringContaining('x-perch-version')]);
    });

    it('takes the longest endpoint name before a version', async () => {
      const { status, headers } = await stand.post('/serve/text/scale/7', rows);
      expect([status, headers.get('x-perch-version')]).toEqual([200, '1']);
    });

    it.each([
      ['an unknown endpoint', '/serve/nothing/here', rows, 404, 'nothing/here'],
      ['a version that is not served', '/serve/text/scale/9', rows, 404, 'it serves 2, 1'],
      ['broken JSON', '/serve/text/scale', '{"x": [1,', 400, 'JSON'],
      ['an unknown input', '/serve/text/scale', { z: [[1, 2, 3, 4]] }, 400, '"z"'],
      ['a missing input', '/serve/text/scale', {}, 400, '"x"'],
      ['a wrong shape', '/serve/text/scale', { x: [[1, 2, 3]] }, 400, 'x'],
      ['a wrong type', '/serve/text/scale', { x: [['a', 'b', 'c', 'd']] }, 400, 'x'],
      ['a body that is too large', '/serve/small', { x: [Array(100).fill(1)] }, 413, '100 bytes'],
      ['a batch beyond the model’s', '/serve/text/scale', { x: Array(9).fill([1, 2, 3, 4]) }, 400, '8'],
    ])('refuses %s', async (_what, path, body, status, words) => {
      const answer = await stand.post(path, body);
      expect([answer.status, answer.json.error.message]).toEqual([status, expect.stringContaining(words)]);
      expect(answer.json.error.requestId).toBe(answer.headers.get('x-request-id'));
      expect(answer.headers.get('x-perch-version')).not.toBeNull();
      expect(answer.text).not.toContain('scale-v');
      expect((await stand.post('/serve/text/scale', rows)).status).toBe(200);
    });

    it('refuses a chunked body that grows too large, and another media type', async () => {
      const chunks = new ReadableStream({
        start(controller) {
          for (let i = 0; i < 5; i += 1) controller.enqueue(new Uint8Array(50));
          controller.close();
        },
      });
      const init = { method: 'POST', body: chunks, duplex: 'half' } as RequestInit;
      const grown = await stand.send('/serve/small', init);
      expect([grown.status, grown.json.error.code]).toEqual([413, 'too_large']);
      const picture = await stand.post('/serve/text/scale', 'x', { 'content-type': 'image/png' });
      expect(picture.status).toBe(415);
    });

    it.each([
      ['no key', 'locked', {}, 401],
      ['an unknown key', 'locked', bearer('nobody'), 401],
      ['another scheme', 'locked', { authorization: 'Basic YWxsOmFsbA==' }, 401],
      ['a key for all', 'locked', bearer('all'), 200],
      ['a key of another scope', 'locked', bearer('other'), 403],
      ['a prefix that fits', 'text/locked', bearer('text-only'), 200],
      ['a prefix that does not', 'locked', bearer('text-only'), 403],
    ])('with %s on %s', async (_what, endpoint, headers, status) => {
      expect((await stand.post(`/serve/${endpoint}`, rows, headers)).status).toBe(status);
    });

    it('keeps to the time the client gives', async () => {
      const { status, json } = await stand.post('/serve/text/scale', rows, { 'x-request-timeout-ms': '0' });
      expect([status, json.error.message]).toEqual([400, expect.stringContaining('x-request-timeout-ms')]);
    });
  });

  describe('/v2', () => {
    const input = { name: 'x', datatype: 'FP32', shape: [1, 4] };
    it('answers JSON under the names the client knows', async () => {
      for (const name of ['text%2Fscale', 'text/scale', 'text%252Fscale']) {
        const { status, json, headers } = await stand.post(`/v2/models/${name}/infer`, {
          id: 'a"b',
          inputs: [{ ...input, data: [1, 2, 3, 4] }],
        });
        expect({ status, json }).toEqual({
          status: 200,
          json: {
            id: 'a"b',
            model_name: 'text/scale',
            model_version: '2',
            outputs: [{ name: 'y', datatype: 'FP32', shape: [1, 4], data: [2, 4, 6, 8] }],
          },
        });
        expect(headers.get('x-perch-version')).toBe('2');
      }
    });

    it('passes binary tensors both ways', async () => {
      const head = JSON.stringify({
        inputs: [{ ...input, parameters: { binary_data_size: 16 } }],
        outputs: [{ name: 'y', parameters: { binary_data: true } }],
      });
      const body = Buffer.concat([Buffer.from(head), floats(1, 2, 3, 4)]);
      const response = await fetch(`${stand.router.address}/v2/models/text%2Fscale/versions/1/infer`, {
        method: 'POST',
        body,
        headers: { 'inference-header-content-length': String(head.length) },
      });
      const bytes = Buffer.from(await response.arrayBuffer());
      const length = Number(response.headers.get('inference-header-content-length'));
      const json = JSON.parse(bytes.toString('utf8', 0, length));
      expect([json.model_name, json.model_version]).toEqual(['text/scale', '1']);
      expect([...new Float32Array(new Uint8Array(bytes.subarray(length)).buffer)]).toEqual([1, 2, 3, 4]);
    });

    it('tells a model’s metadata, configuration and readiness under its own name', async () => {
      expect((await stand.send('/v2/models/text%2Fscale')).json).toMatchObject({
        name: 'text/scale',
        versions: ['1', '2'],
        inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
      });
      expect((await stand.send('/v2/models/text%2Fscale/config')).json).toMatchObject({
        name: 'text/scale',
        max_batch_size: 8,
      });
      expect((await stand.send('/v2/models/text%2Fscale/versions/1/stats')).json.model_stats[0]).toMatchObject({
        name: 'text/scale',
        version: '1',
      });
      expect((await stand.send('/v2/models/text%2Fscale/ready')).status).toBe(200);
      expect((await stand.send('/v2/health/live')).status).toBe(200);
      expect((await stand.send('/v2/health/ready')).status).toBe(200);
      expect((await stand.send('/v2')).json.name).toBe('perch');
      const index = await stand.post('/v2/repository/index', {});
      expect(index.json).toContainEqual({ name: 'text/scale', version: '2', state: 'READY', reason: '' });
      expect(index.json.map((entry: { name: string }) => entry.name)).not.toContain('locked');
    });

    it.each([
      ['an unknown model', 'nothing', { inputs: [] }, 404, "unknown model: 'nothing'"],
      ['a wrong name', 'text%2Fscale', { inputs: [{ ...input, name: 'q', data: [1, 2, 3, 4] }] }, 400, 'q'],
      ['a wrong shape', 'text%2Fscale', { inputs: [{ ...input, shape: [1, 3], data: [1, 2, 3] }] }, 400, 'shape'],
      ['a wrong type', 'text%2Fscale', { inputs: [{ ...input, datatype: 'INT32', data: [1, 2, 3, 4] }] }, 400, 'x'],
      ['too little data', 'text%2Fscale', { inputs: [{ ...input, data: [1, 2] }] }, 400, 'data'],
      ['broken JSON', 'text%2Fscale', '{"inputs": [', 400, ''],
      ['a missing key', 'locked', { inputs: [] }, 401, 'key'],
    ])('refuses %s in its own form', async (_what, name, body, status, words) => {
      const answer = await stand.post(`/v2/models/${name}/infer`, body);
      expect([answer.status, answer.json]).toEqual([status, { error: expect.stringContaining(words) }]);
      expect(answer.text).not.toContain('scale-v');
    });
  });

  it('has health and metrics', async () => {
    expect((await stand.send('/health/live')).status).toBe(200);
    expect((await stand.send('/health/ready')).json.ready).toBe(true);
    const { text } = await stand.send('/metrics');
    expect(text).toMatch(/perch_router_requests_total\{endpoint="text\/scale",version="2",arm="d2",outcome="ok"\} \d+/);
    expect(text).toMatch(/perch_router_request_duration_seconds_bucket\{[^}]*le="\+Inf"\} \d+/);
    expect(text).toContain('process_cpu_seconds_total');
  });
});
