import {
  bundlePath,
  type EndpointSpecInput,
  type EndpointWhy,
  type ModuleFacts,
  type ModuleUpload,
  type ProcessingModuleRecord,
  type Rollout,
  type RolloutPolicyInput,
  sha256Hex,
} from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { ConstantLoad } from '../support/load.ts';
import { scaleModel } from '../support/onnx.ts';
import { Stack } from '../support/stack.ts';

const model = { project: 'mod', name: 'scale' };
const input = { x: [1, 2, 3, 4] };
const wide = { margin: { absolute: 0.25, relative: 0.2 } };
/** As `quick`, and margins that some tens of requests can prove. */
const policy: RolloutPolicyInput = {
  dwellMs: 1_000,
  bakeMs: 1_000,
  slowGraceMs: 0,
  error: wide,
  contract: wide,
  slow: false,
  weightsPercent: [50],
};

/** Scales by the model, and names itself in the reply; `extra` runs before the reply is made. */
const scaling = (name: string, extra = '') => `import { asFloat32, float32 } from '@perch/processing';
export default {
  preprocess: (body) => ({ inputs: { x: float32(body.x, [1, 4]) } }),
  postprocess(outputs, _state, ctx) { ${extra} return { by: '${name}', y: [...asFloat32(outputs.y)] }; },
};`;
const around: ModuleFacts['hooks'] = ['preprocess', 'postprocess'];

describe('processing modules on the embedded engine', () => {
  let stack: Stack;
  let admin: Admin;
  const loads: ConstantLoad[] = [];
  beforeAll(async () => {
    stack = await Stack.start();
    admin = new Admin(stack);
    await admin.upload('mod/scale', { 'model.onnx': scaleModel(2) });
  });
  afterAll(async () => {
    for (const load of loads) await load.stop();
    await stack?.stop();
  });

  async function register(name: string, text: string, hooks = around): Promise<string> {
    const bytes = Buffer.from(text);
    const files = [{ path: bundlePath, sha256: sha256Hex(text), size: bytes.length }];
    const body = { facts: { hooks, body: 'json' }, files };
    const path = `/modules/${encodeURIComponent(name)}`;
    const { missing } = await admin.must<ModuleUpload>('POST', `${path}/uploads`, body);
    for (const { url, headers } of missing) {
      const sent = await fetch(url!, { method: 'PUT', headers, body: bytes });
      if (!sent.ok) throw new Error(`PUT: ${sent.status}`);
    }
    const { number } = await admin.must<ProcessingModuleRecord>('POST', path, body);
    return `${name}@${number}`;
  }

  const put = (spec: EndpointSpecInput) => admin.must('POST', '/apply', spec);
  const load = (endpoint: string, perSecond: number) => {
    const headers = { authorization: `Bearer ${stack.adminKey}` };
    const url = `${stack.router.address}/serve/${endpoint}`;
    const made = new ConstantLoad(url, headers, JSON.stringify(input), perSecond).start();
    loads.push(made);
    return made;
  };
  /** Until the endpoint's replies are made by this module. */
  const untilBy = (endpoint: string, by: string) =>
    expect
      .poll(async () => (await admin.serve<{ by?: string }>(endpoint, input)).body.by, {
        timeout: 20_000,
        interval: 50,
      })
      .toBe(by)
      .catch(async (error) => {
        throw new Error(`${error}\n${await stack.logs()}`);
      });
  const failed = ({ replies }: ConstantLoad) => replies.filter(({ status }) => status !== 200).slice(0, 3);

  it('swaps the module of an endpoint under load without a dropped request', async () => {
    const spec = (module: string): EndpointSpecInput => ({ name: 'mod/swap', model, processing: { module } });
    for (const name of ['first', 'second', 'third']) await register('mod/swap', scaling(name));
    await put(spec('mod/swap@1'));
    await untilBy('mod/swap', 'first');
    const { body } = await admin.serve<object>('mod/swap', input);
    expect(body).toEqual({ by: 'first', y: [2, 4, 6, 8] });
    const running = load('mod/swap', 60);
    for (const [module, by] of [
      ['mod/swap@2', 'second'],
      ['mod/swap@3', 'third'],
      ['mod/swap@1', 'first'],
    ] as const) {
      await put(spec(module));
      await untilBy('mod/swap', by);
    }
    await running.stop();
    expect(failed(running)).toEqual([]);
    expect(new Set(running.replies.map(({ body: text }) => JSON.parse(text).by)).size).toBe(3);
  }, 60_000);

  it('rolls back a module that throws, without an error for a client, and promotes one that is fine', async () => {
    const spec = (module: string): EndpointSpecInput => ({
      name: 'mod/trial',
      model,
      processing: { module },
      traffic: { mode: 'progressive', policy },
    });
    await register('mod/trial', scaling('good'));
    await register('mod/trial', scaling('bad', "if (Math.random() < 0.3) throw new Error('no such label');"));
    await register('mod/trial', scaling('better'));
    await put(spec('mod/trial@1'));
    await untilBy('mod/trial', 'good');
    const path = `/rollouts?endpoint=${encodeURIComponent('mod/trial')}`;
    const rollouts = async () => (await admin.must<{ items: Rollout[] }>('GET', path)).items;
    const until = (state: string, count: number) =>
      expect
        .poll(
          async () => {
            const all = await rollouts();
            return [all.length, all[0]?.state];
          },
          { timeout: 60_000, interval: 200, message: state },
        )
        .toEqual([count, state])
        .catch(async (error) => {
          throw new Error(`${error}\n${JSON.stringify((await rollouts())[0])}\n${await stack.logs()}`);
        });
    const running = load('mod/trial', 60);
    await put(spec('mod/trial@2'));
    await until('rolled_back', 1);
    await expect
      .poll(async () => (await admin.endpoint('mod/trial')).status, { timeout: 10_000, interval: 100 })
      .toMatchObject({ phase: 'blocked', reason: 'refused', servingVersions: [1] });
    const thrown = running.replies.filter(({ body }) => body.includes('"bad"')).length;
    expect(thrown).toBeGreaterThan(0);
    await put(spec('mod/trial@3'));
    await until('promoted', 2);
    await running.stop();
    expect(failed(running)).toEqual([]);
    await untilBy('mod/trial', 'better');
    const { chain } = await admin.must<EndpointWhy>('GET', `/endpoints/${encodeURIComponent('mod/trial')}/why`);
    expect(chain.map(({ message }) => message)).toContain(
      'its deployment is ready (module mod/trial@3, isolation worker)',
    );
  }, 150_000);

  it('says why a module does not load, while the one before serves on', async () => {
    await register('mod/broken', scaling('fine'));
    await register('mod/broken', "throw new Error('this file is not meant to be run');\nexport default {};");
    const spec = (module: string): EndpointSpecInput => ({ name: 'mod/broken', model, processing: { module } });
    await put(spec('mod/broken@1'));
    await untilBy('mod/broken', 'fine');
    await put(spec('mod/broken@2'));
    await expect
      .poll(async () => (await admin.endpoint('mod/broken')).status.message, { timeout: 20_000, interval: 100 })
      .toMatch(/^version 1 failed: router router-a: .*this file is not meant to be run.*; version 1 serves$/s);
    expect((await admin.serve<{ by: string }>('mod/broken', input)).body.by).toBe('fine');
  }, 60_000);

  it('serves a module that has no model at all', async () => {
    const text = `export default { async process(body, _state, ctx) {
      if (body.ask) return ctx.infer({});
      return { sum: body.x.reduce((a, b) => a + b, 0) };
    } };`;
    await register('mod/sum', text, ['process']);
    await put({ name: 'mod/sum', engine: { platform: 'custom' }, processing: { module: 'mod/sum' } } as never);
    await admin.untilServed('mod/sum', 1, input);
    expect((await admin.serve('mod/sum', input)).body).toEqual({ sum: 10 });
    expect(await admin.serve('mod/sum', { ...input, ask: true })).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid', message: expect.stringContaining('has no model to ask') } },
    });
    const oip = (path: string, init: RequestInit = {}) =>
      fetch(`${stack.router.address}/v2/models/mod%2Fsum${path}`, {
        ...init,
        headers: { authorization: `Bearer ${stack.adminKey}` },
      });
    expect((await oip('/ready')).status).toBe(200);
    const refused = await oip('/infer', { method: 'POST', body: JSON.stringify({ inputs: [] }) });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: expect.stringContaining('endpoint mod/sum has no model to ask') },
    ]);
  }, 60_000);
});
