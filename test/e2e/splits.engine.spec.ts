import type { Split, SplitSpecInput } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin, type Answer } from '../support/admin.ts';
import { scaleModel } from '../support/onnx.ts';
import { Stack } from '../support/stack.ts';

const input = { x: [[1, 2, 3, 4]] };
const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }];
type Reply = Answer<{ y: number[][] }>;

describe('splits through the whole product', () => {
  let stack: Stack;
  let admin: Admin;
  beforeAll(async () => {
    stack = await Stack.start();
    admin = new Admin(stack);
    for (const [model, factor] of [
      ['one', 2],
      ['two', 3],
    ] as const) {
      // biome-ignore format: one row reads better
      await admin.upload(`e2e/${model}`, { 'model.onnx': scaleModel(factor) });
      await admin.addEndpoint({ name: `e/${model}`, model: { project: 'e2e', name: model } });
      await admin.untilServed(`e/${model}`, 1, input);
    }
  });
  afterAll(() => stack?.stop());

  const put = (spec: SplitSpecInput) => admin.must('POST', '/apply', { kind: 'Split', ...spec });
  const shown = (name: string) => admin.must<Split>('GET', `/splits/${encodeURIComponent(name)}`);
  /** What the model multiplied by tells who answered. */
  const factorOf = (reply: Reply) => {
    if (reply.status !== 200) throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`);
    return reply.body.y[0]![0]!;
  };
  const ask = async (name: string, headers = {}) => factorOf(await admin.serve(name, input, headers));
  const untilAnswers = (name: string, factors: number[]) =>
    expect
      .poll(
        async () => {
          const asked = await Promise.all(Array.from({ length: 24 }, () => ask(name).catch(() => 0)));
          return [...new Set(asked)].sort();
        },
        { timeout: 20_000, interval: 50 },
      )
      .toEqual(factors);

  async function count(name: string, requests: number): Promise<Map<number, number>> {
    const counts = new Map<number, number>();
    let left = requests;
    const ask1 = async () => {
      for (; left > 0; ) {
        left -= 1;
        const factor = await ask(name);
        counts.set(factor, (counts.get(factor) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: 16 }, ask1));
    return counts;
  }

  it('shares requests out between two endpoints by weight, and answers under its name everywhere', async () => {
    await put({ name: 'e/ab', targets: ['e/one', 'e/two'], weights: [1, 3] });
    await untilAnswers('e/ab', [2, 3]);
    const requests = 1_600;
    const counts = await count('e/ab', requests);
    const square = [[2, 0.25], [3, 0.75]].map(([factor, share]) => ((counts.get(factor!) ?? 0) - requests * share!) ** 2 / (requests * share!)); // biome-ignore format: one row reads better
    // one degree of freedom: 19.5 is exceeded once in 100,000 runs
    expect(square[0]! + square[1]!, JSON.stringify([...counts])).toBeLessThan(19.5);

    const v2 = `${stack.router.address}/v2/models/e%2Fab`;
    const headers = { authorization: `Bearer ${admin.key}`, 'content-type': 'application/json' };
    const metadata = await (await fetch(v2, { headers })).json();
    expect(metadata).toMatchObject({ name: 'e/ab', versions: ['1'], inputs: [{ name: 'x' }] });
    const inferred = await fetch(`${v2}/infer`, { method: 'POST', headers, body: JSON.stringify({ inputs }) });
    expect(await inferred.json()).toMatchObject({ model_name: 'e/ab', outputs: [{ name: 'y' }] });
    expect((await fetch(`${v2}/ready`, { headers })).status).toBe(200);
    expect(await ask('e/ab/1')).toBe(3); // both have a version 1: the heavier one is meant
    expect((await admin.serve('e/ab/9', input)).status).toBe(404);
  });

  it('keeps a user on one target, and lets keys in by its own name alone', async () => {
    await put({ name: 'e/ab', targets: ['e/one', 'e/two'], weights: [1, 1], sticky: { header: 'X-User' } });
    const first = () => Promise.all(Array.from({ length: 20 }, (_, user) => ask('e/ab', { 'x-user': `u${user}` })));
    await expect.poll(async () => JSON.stringify([await first(), await first()]), { timeout: 20_000 }).toMatch(/^\[(\[.*\]),\1\]$/); // biome-ignore format: one row reads better
    const before = await first();
    expect(new Set(before)).toEqual(new Set([2, 3]));
    for (let again = 0; again < 3; again += 1) expect(await first()).toEqual(before);

    const key = { name: 'ab', role: 'inference', endpoints: ['e/ab'] };
    const { secret } = await admin.must<{ secret: string }>('POST', '/keys', key);
    const holder = new Admin(stack, secret);
    await expect.poll(async () => (await holder.serve('e/ab', input)).status, { timeout: 20_000 }).toBe(200);
    expect((await holder.serve('e/one', input)).status).toBe(403);
  });

  it('below a prefix follows what is published; a version named by hand outlives maxVersions', async () => {
    await admin.must('PUT', `/endpoints/${encodeURIComponent('e/one')}`, {
      name: 'e/one',
      model: { project: 'e2e', name: 'one', maxVersions: 2 },
    });
    await put({ name: 'newest', targetPrefix: 'e/one/', newestFirst: [0.5, 0.5] });
    await put({ name: 'first', targets: ['e/one/1'], weights: [1] });
    await untilAnswers('newest', [2]);
    await admin.upload('e2e/one', { 'model.onnx': scaleModel(5) });
    await untilAnswers('newest', [2, 5]);
    await admin.upload('e2e/one', { 'model.onnx': scaleModel(7) });
    await untilAnswers('newest', [5, 7]);
    expect(await ask('first')).toBe(2);
    expect(await ask('e/one')).toBe(7);
    expect((await shown('newest')).message).toBe('50 % to e/one/3, 50 % to e/one/2');

    const refused = await admin.call<{ detail: string }>('DELETE', '/endpoints/e%2Fone');
    expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining('split first (e/one/1)')]);
    await admin.must('DELETE', '/splits/first');
    await expect.poll(async () => (await admin.serve('first', input)).status, { timeout: 20_000 }).toBe(404);
    await expect.poll(async () => (await admin.endpoint('e/one')).deployments.map(({ version }) => version), { timeout: 20_000 }).toEqual([3, 2]); // biome-ignore format: one row reads better
    expect(await ask('newest')).toBeGreaterThan(2);
  });

  it('refuses what makes no sense, by field, and If-Match that is late', async () => {
    const post = (body: unknown) =>
      admin.call<{ detail: string; errors?: { path: string }[] }>('POST', '/splits', body);
    for (const [weights, words] of [
      [[0, 0], 'above zero'],
      [[1], 'wants 2 weights'],
      [[1, -1], '>=0'],
      [[1, null], 'number'],
      [undefined, 'one weight each'],
    ] as const) {
      const { status, body } = await post({ name: 'bad', targets: ['e/one', 'e/two'], weights });
      expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(words)]);
    }
    expect((await post({ name: 'bad', targets: ['e/ab'], weights: [1] })).body.detail).toContain('e/ab is a split');
    const spec = { name: 'newest', targetPrefix: 'e/one/', newestFirst: [1] };
    expect((await post(spec)).status).toBe(409);
    const late = await admin.call('PUT', '/splits/newest', spec, { 'if-match': '"9"' });
    expect(late.status).toBe(412);
    const key = { 'idempotency-key': 'once' };
    const twice = [await admin.call('POST', '/splits', { ...spec, name: 'once' }, key), await admin.call('POST', '/splits', { ...spec, name: 'once' }, key)]; // biome-ignore format: one row reads better
    expect(twice.map(({ status }) => status)).toEqual([201, 201]);
    const got = await admin.call('GET', '/splits/once');
    expect(got.headers.get('etag')).toBe('"1"');
    const { items } = await admin.must<{ items: Split[] }>('GET', '/splits');
    expect(items.map(({ name }) => name)).toEqual(expect.arrayContaining(['e/ab', 'newest', 'once']));
  });
});
