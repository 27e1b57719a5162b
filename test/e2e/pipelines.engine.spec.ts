import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApplyResult, ModuleUpload, Pipeline, Rollout, RolloutPolicyInput } from '@perch/contracts';
import { definePipeline, each } from '@perch/processing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { ConstantLoad } from '../support/load.ts';
import { scaleModel } from '../support/onnx.ts';
import { Stack } from '../support/stack.ts';
import { Person } from './cli-stack.ts';

const wide = { margin: { absolute: 0.1, relative: 0.2 } };
const policy: RolloutPolicyInput = {
  dwellMs: 1_000,
  bakeMs: 2_000,
  slowGraceMs: 0,
  error: wide,
  contract: wide,
  slow: false,
  weightsPercent: [20, 50],
};

interface Scaled {
  y: number[][];
}

/** As `perch processing add` bundles one. */
const sum = `export default {
  process({ values }) {
    return { sum: values.reduce((total, one) => total + one, 0) };
  },
};
`;
/** Two models side by side, each item of a list through one of them, and a module that takes it all together. */
const pipeline = `import { definePipeline, each } from '@perch/processing';

interface Scaled { y: number[][] }

export default definePipeline<{ x: number[][]; list: number[][][] }>('e/all', (p) => {
  const one = p.endpoint<Scaled>('one', 'e/one', { input: { x: p.body.x } });
  const two = p.endpoint<Scaled>('two', 'e/two', { input: { x: p.body.x }, timeoutMs: 30_000 });
  const items = p.mapEndpoint<number[][], Scaled>('items', 'e/two', { over: p.body.list, input: (x) => ({ x }) });
  const sum = p.module<{ sum: number }>('sum', 'e/sum', { input: { values: [one.y[0]![0]!, two.y[0]![0]!] } });
  return { sum: sum.sum, items: each(items).y[0]![0]!, two: two.y };
});
`;
/** The same, made here: adding it costs no type check. */
const all = definePipeline<{ x: number[][]; list: number[][][] }>('e/all', (p) => {
  const one = p.endpoint<Scaled>('one', 'e/one', { input: { x: p.body.x } });
  const two = p.endpoint<Scaled>('two', 'e/two', { input: { x: p.body.x }, timeoutMs: 30_000 });
  const items = p.mapEndpoint<number[][], Scaled>('items', 'e/two', { over: p.body.list, input: (x) => ({ x }) });
  const sum = p.module<{ sum: number }>('sum', 'e/sum', { input: { values: [one.y[0]![0]!, two.y[0]![0]!] } });
  return { sum: sum.sum, items: each(items).y[0]![0]!, two: two.y };
});
const chain = `kind: Pipeline
name: e/chain
nodes:
  one: { endpoint: e/one, input: { x: $body.x } }
  two: { endpoint: e/two, input: { x: $one.y } }
output: { z: $two.y }
`;

describe('pipelines through the whole product', () => {
  let stack: Stack;
  let admin: Admin;
  let person: Person;
  const env = () => ({
    PERCH_URL: stack.controlPlane.address,
    PERCH_ROUTER_URL: stack.router.address,
    PERCH_API_KEY: stack.adminKey,
  });
  const perch = async (...args: string[]) => {
    const ran = await person.run(args, { env: env() });
    if (ran.code !== 0) throw new Error(`perch ${args.join(' ')} exited ${ran.code}: ${ran.err}`);
    return ran;
  };
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse((await perch(...args, '-o', 'json')).out) as T;

  beforeAll(async () => {
    [stack, person] = await Promise.all([Stack.start(), Person.make()]);
    admin = new Admin(stack);
    const traffic = { mode: 'progressive' as const, policy };
    for (const [name, factor] of [
      ['one', 2],
      ['two', 3],
    ] as const) {
      await admin.upload(`e2e/${name}`, { 'model.onnx': scaleModel(factor) });
      await admin.addEndpoint({ name: `e/${name}`, model: { project: 'e2e', name }, ...(name === 'two' ? { traffic } : {}) }); // biome-ignore format: one row reads better
      await admin.untilServed(`e/${name}`, 1, { x: [[1, 1, 1, 1]] });
    }
    await registerSum();
    await writeFile(join(person.folder, 'all.ts'), pipeline);
    await writeFile(join(person.folder, 'chain.yaml'), chain);
  }, 90_000);
  afterAll(async () => {
    await person?.leave();
    await stack?.stop();
  });

  async function registerSum(): Promise<void> {
    const bytes = Buffer.from(sum);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const wish = { facts: { hooks: ['process'] }, files: [{ path: 'module.mjs', sha256, size: bytes.length }] };
    const { missing } = await admin.must<ModuleUpload>('POST', '/modules/e%2Fsum/uploads', wish);
    await fetch(missing[0]!.url!, { method: 'PUT', headers: missing[0]!.headers, body: bytes });
    await admin.must('POST', '/modules/e%2Fsum', wish);
  }

  const body = { x: [[1, 2, 3, 4]], list: [[[1, 0, 0, 0]], [[2, 0, 0, 0]]] };
  const answer = { sum: 5, items: [3, 6], two: [[3, 6, 9, 12]] };
  const text = JSON.stringify(body);

  it('is written in TypeScript, runs here and there, is drawn and exported', async () => {
    // its endpoints over HTTP, its module in this program, as it is registered
    expect(await json('pipeline', 'run', 'all.ts', '--local', '--json', text)).toEqual(answer);
    const added = await admin.must<ApplyResult>('POST', '/apply', all);
    expect(added).toMatchObject({
      outcome: 'created',
      effect: expect.arrayContaining(['node sum runs module e/sum@1']),
    });
    await expect.poll(async () => (await admin.serve('e/all', body)).body, { timeout: 20_000 }).toEqual(answer);
    const ran = await perch('pipeline', 'run', 'e/all', '--json', text, '--trace');
    expect(JSON.parse(ran.out)).toEqual(answer);
    for (const node of ['one', 'two', 'items', 'sum']) expect(ran.err).toMatch(new RegExp(`${node} .*ms .*ok`));
    const shown = await admin.must<Pipeline>('GET', '/pipelines/e%2Fall');
    expect(shown.nodes.find(({ node }) => node === 'two')).toMatchObject({ versions: [{ version: 1, sharePercent: 100, servers: [expect.any(String)] }] }); // biome-ignore format: one row reads better
    await perch('pipeline', 'add', 'chain.yaml', '--wait');
    const exported = await json<{ ensemble: string }>('pipeline', 'export', 'e/chain', 'out');
    expect(exported).toMatchObject({ ensemble: 'e-chain', models: ['one', 'two', 'e-chain'] });
    expect((await admin.serve('e/chain', { x: [[1, 2, 3, 4]] })).body).toEqual({ z: [[6, 12, 18, 24]] });
    expect(await readFile(join(person.folder, 'out/README.md'), 'utf8')).toContain(
      'The whole pipeline is the ensemble `e-chain`',
    );
  }, 180_000);

  it("has each node's canary: a candidate that breaks is rolled back, and no client of the pipeline sees it", async () => {
    const headers = { authorization: `Bearer ${stack.adminKey}` };
    const load = new ConstantLoad(`${stack.router.address}/serve/e/all`, headers, text, 15).start();
    const newest = async () => (await admin.must<{ items: Rollout[] }>('GET', '/rollouts?endpoint=e%2Ftwo')).items[0];
    try {
      await admin.upload('e2e/two', { 'model.onnx': scaleModel(Number.NaN) });
      await expect.poll(async () => (await newest())?.state, { timeout: 80_000, interval: 200 }).toBe('rolled_back');
    } catch (error) {
      throw new Error(`${error}\n${JSON.stringify(await newest())}\n${await stack.logs()}`);
    } finally {
      await load.stop();
    }
    const seen = new Set(load.replies.map((reply) => `${reply.status} ${reply.body}`));
    expect([...seen].map((one) => [one.slice(0, 3), JSON.parse(one.slice(4))])).toEqual([['200', answer]]);
    const metrics = await (await fetch(`${stack.router.address}/metrics`)).text();
    expect(metrics).toMatch(/perch_router_fallbacks_total\{endpoint="e\/two",version="2",reason="contract"\} [1-9]/);
    expect(metrics).toMatch(/perch_pipeline_nodes_total\{pipeline="e\/all",node="two",outcome="ok"\} [1-9]/);
  }, 90_000);
});
