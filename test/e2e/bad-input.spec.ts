import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { scaleModel } from '../support/onnx.ts';
import { Stack } from '../support/stack.ts';

const input = { x: [[1, 2, 3, 4]] };
const endpoint = 'bad/scale';

interface Failure {
  error: { code: string; message: string; requestId: string };
}

describe('bad input through the whole product: a clear error, and nothing changes', () => {
  let stack: Stack;
  let admin: Admin;
  beforeAll(async () => {
    stack = await Stack.start();
    admin = new Admin(stack);
    await admin.upload('bad/scale', { 'model.onnx': scaleModel(1) });
    await admin.addEndpoint({
      name: endpoint,
      model: { project: 'bad', name: 'scale', maxVersions: 2 },
      limits: { maxBodyBytes: 10_000 },
    });
    await admin.untilServed(endpoint, 1, input);
  });
  afterAll(() => stack?.stop());

  const stillServing = async (version: number) => {
    const answer = await admin.serve(endpoint, input);
    expect([answer.status, answer.headers.get('x-perch-version')]).toEqual([200, String(version)]);
  };

  it("a corrupt ONNX file: the deployment is failed with the server's own words, the old version goes on serving", async () => {
    const { number } = await admin.upload('bad/scale', { 'model.onnx': Buffer.from('this is no ONNX file') });
    await expect
      .poll(async () => (await admin.endpoint(endpoint)).deployments.find(({ version }) => version === number)?.state, {
        timeout: 30_000,
      })
      .toBe('failed');
    const failed = (await admin.endpoint(endpoint)).deployments.find(({ version }) => version === number)!;
    expect(failed.reason).toMatch(/protobuf|parse|onnx/i);
    await stillServing(1);
    const good = await admin.upload('bad/scale', { 'model.onnx': scaleModel(3) });
    await admin.untilServed(endpoint, good.number, input);
  });

  it.each([
    ['a wrong tensor name', { y: [[1, 2, 3, 4]] }, 400, /y.*x|x.*y/s],
    ['a wrong shape', { x: [[1, 2, 3]] }, 400, /x.*4|shape/s],
    ['a wrong type', { x: [['a', 'b', 'c', 'd']] }, 400, /x.*FP32/s],
    ['ragged rows', { x: [[1, 2, 3, 4], [1]] }, 400, /x/],
    ['broken JSON', '{"x": [[1, 2', 400, /JSON/],
    ['a body too large', { x: [Array.from({ length: 9_000 }, () => 0.25)] }, 413, /10000|10,000/],
  ])('%s is refused by name', async (_name, body, status, words) => {
    const answer = await admin.serve<Failure>(endpoint, body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
    expect(answer.body.error.message).toMatch(words);
    expect(answer.body.error.requestId).toBe(answer.headers.get('x-request-id'));
    expect(JSON.stringify(answer.body)).not.toMatch(/\bat .*\.js:\d+/);
    expect((await admin.serve(endpoint, input)).status).toBe(200);
  });

  it('an unknown endpoint, an unknown version, a wrong key, a key for another endpoint', async () => {
    expect(await admin.serve('no/such', input)).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found', message: expect.stringContaining('no/such') } },
    });
    expect(await admin.serve(`${endpoint}/77`, input)).toMatchObject({
      status: 404,
      body: { error: { message: expect.stringContaining('77') } },
    });
    const wrong = new Admin(stack, 'pk_wrong_key');
    expect(await wrong.serve(endpoint, input)).toMatchObject({ status: 401 });
    expect(await wrong.call('GET', '/models')).toMatchObject({ status: 401 });
    const { secret } = await admin.must<{ secret: string }>('POST', '/keys', {
      name: 'other',
      role: 'inference',
      endpoints: ['other/*'],
    });
    const other = new Admin(stack, secret);
    await expect.poll(async () => (await other.serve(endpoint, input)).status, { timeout: 10_000 }).toBe(403);
  });

  it('a key without the role changes nothing', async () => {
    const { secret } = await admin.must<{ secret: string }>('POST', '/keys', { name: 'reader', role: 'viewer' });
    const reader = new Admin(stack, secret);
    const before = await admin.endpoint(endpoint);
    const refused = await reader.call<{ code: string; detail: string }>(
      'DELETE',
      `/endpoints/${encodeURIComponent(endpoint)}`,
    );
    expect(refused).toMatchObject({
      status: 403,
      body: { code: 'forbidden', detail: expect.stringMatching(/viewer|operator/) },
    });
    expect((await admin.endpoint(endpoint)).generation).toBe(before.generation);
  });

  it('two writers of one endpoint: one wins, the other sees the difference', async () => {
    const at = `/endpoints/${encodeURIComponent(endpoint)}`;
    const { spec, generation } = await admin.endpoint(endpoint);
    const write = (description: string) =>
      admin.call('PUT', at, { ...spec, description }, { 'if-match': `"${generation}"` });
    const answers = await Promise.all([write('first'), write('second')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412]);
    const lost = answers.find(({ status }) => status === 412)!;
    expect(JSON.stringify(lost.body)).toContain('description');
    expect((await admin.endpoint(endpoint)).generation).toBe(generation + 1);
  });

  it('what a later release brings is refused by name', async () => {
    const answer = await admin.call<{ code: string; detail: string }>('POST', '/endpoints', {
      name: 'bad/later',
      model: { project: 'bad', name: 'scale' },
      limits: { concurrency: 4 },
    });
    expect(answer.body).toMatchObject({
      code: 'not_available_yet',
      detail: expect.stringContaining('limits.concurrency'),
    });
    expect((await admin.call('GET', `/endpoints/${encodeURIComponent('bad/later')}`)).status).toBe(404);
  });
});
