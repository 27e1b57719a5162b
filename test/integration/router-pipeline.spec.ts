import type { ServerResponse } from 'node:http';
import {
  type BoundProcessing,
  type PipelineNode,
  type PipelineValue,
  pipelineSpec,
  type Route,
} from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route, target } from '../../bench/control-stub.mjs';
import { CanaryStand, failing, floats, right, tally, until } from './canary-stand.ts';
import { ClosedLoad } from './router-stand.ts';
import type { Act } from './scripted-server.ts';

let at: CanaryStand;
beforeAll(async () => {
  at = await CanaryStand.start();
});
afterAll(() => at?.stop());

let count = 0;
const fresh = (word: string) => `${word}${count++}`;
const tensor = (name: string) => [{ name, datatype: 'FP32' as const, shape: [-1, -1] }];

/** An endpoint that does as it is told. */
async function endpoint(act: Act, fields: Partial<Route> = {}): Promise<string> {
  const name = fresh('m');
  at.stable.actFor.set(name, act);
  const one = target({
    deployment: name,
    tritonModel: name,
    servers: ['a'],
    inputs: tensor('x'),
    outputs: tensor('y'),
  });
  await at.add(name, route([one], fields));
  return name;
}

async function pipeline(nodes: Record<string, Partial<PipelineNode>>, output: unknown, fields: Partial<Route> = {}) {
  const name = fresh('p');
  const spec = pipelineSpec.parse({ kind: 'Pipeline', name, nodes, output });
  const bound = { generation: 3, nodes: spec.nodes, output: spec.output as PipelineValue, modules: {} };
  const one = { arms: [], targets: [], access: 'public' as const, timeoutMs: 10_000, maxBodyBytes: 1_000_000, idempotent: true }; // biome-ignore format: one row reads better
  await at.add(name, { ...one, pipeline: bound, ...fields });
  return {
    name,
    ask: (body: unknown = { x: [[1, 2, 3, 4]] }, headers = {}) => at.router.post(`/serve/${name}`, body, headers),
    metric: async (metric: string) =>
      (await at.router.send('/metrics')).text
        .split('\n')
        .filter((line) => line.startsWith(`perch_${metric}{`) && line.includes(`="${name}"`)),
  };
}

const x = { x: '$body.x' };
const slow =
  (held: ServerResponse[]): Act =>
  (_request, response) =>
    void held.push(response);

describe('a pipeline', () => {
  it('runs nodes side by side, hands their results on, and answers the output', async () => {
    const held: (() => void)[] = [];
    const meet: Act = (...call) => {
      held.push(() => right(...call));
      if (held.length === 2) for (const go of held) go(); // neither is answered before both are asked
    };
    const [a, b, c] = [await endpoint(meet), await endpoint(meet), await endpoint(floats([9, 9, 9, 9]))];
    const nodes = {
      a: { endpoint: a, input: x },
      b: { endpoint: b, input: x },
      c: { endpoint: c, input: { x: ['$a.y[0]', '$b.y[0]'] } },
    };
    const { ask, metric, name } = await pipeline(nodes, { first: '$a.y', third: '$c.y[0][1]', at: '$body.at?' });
    const answer = await ask(undefined, { 'x-perch-trace': '1' });
    expect([answer.status, answer.json]).toEqual([200, { first: [[1, 2, 3, 4]], third: 9, at: null }]);
    expect([answer.headers.get('x-perch-version'), answer.headers.get('x-perch-arm')]).toEqual(['3', 'pipeline']);
    const timing = answer.headers.get('server-timing')!;
    for (const node of ['a', 'b', 'c']) expect(timing).toMatch(new RegExp(`(^|, )${node};dur=[0-9.]+;start=[0-9.]+;desc=ok`)); // biome-ignore format: one row reads better
    expect(await metric('pipeline_nodes_total')).toContain(`perch_pipeline_nodes_total{pipeline="${name}",node="c",outcome="ok"} 1`); // biome-ignore format: one row reads better
    expect(await metric('router_requests_total')).toEqual([`perch_router_requests_total{endpoint="${name}",version="3",arm="pipeline",outcome="ok"} 1`]); // biome-ignore format: one row reads better
    held.length = 0;
    expect((await ask()).headers.get('server-timing')).toBeNull();
  });

  it('lets each node have the canary of its endpoint: stable answers for a candidate that fails, unseen', async () => {
    let calls = 0;
    const trial = await at.trial({ share: 0.5 }, (...call) => (calls++ % 3 === 0 ? failing : right)(...call));
    const { ask } = await pipeline({ a: { endpoint: trial.name, input: x }, b: { endpoint: trial.name, input: { x: '$a.y' } } }, '$b.y'); // biome-ignore format: one row reads better
    const answers = await trial.many(40, () => ask());
    expect(answers.map(({ status, json }) => [status, json])).toEqual(answers.map(() => [200, [[1, 2, 3, 4]]]));
    const failed = Math.ceil(trial.asked / 3);
    const { told, of } = await trial.judged(80, failed);
    expect([told.fallbacks, of('candidate', 'error')]).toEqual([failed, [trial.asked, failed]]);
    expect(tally(answers)['200 3 pipeline']).toBe(40);
  });

  it('names the node that failed, keeps its status and gives the others up', async () => {
    const held: ServerResponse[] = [];
    const closed: boolean[] = [];
    const waits = await endpoint((request, response) => {
      held.push(response);
      request.socket.on('close', () => closed.push(true));
    });
    const bad = await endpoint((...call) => void until(() => held.length > 0, () => 'asked').then(() => failing(...call))); // biome-ignore format: one row reads better
    const { ask, name } = await pipeline({ bad: { endpoint: bad, input: x }, waits: { endpoint: waits, input: x } }, ['$bad', '$waits']); // biome-ignore format: one row reads better
    const answer = await ask(undefined, { 'x-perch-trace': '1' });
    expect([answer.status, answer.json.error.code]).toEqual([502, 'upstream']);
    expect(answer.json.error.message).toContain(`pipeline ${name}: node bad: `);
    expect(answer.headers.get('server-timing')).toContain('desc=upstream');
    await until(() => closed.length > 0, () => 'the other node given up'); // biome-ignore format: one row reads better
  });

  it('has fallbacks and time limits for each node', async () => {
    const held: ServerResponse[] = [];
    const late = await endpoint(slow(held));
    const bad = await endpoint(failing);
    const nodes = {
      a: { endpoint: late, input: x, timeoutMs: 40, fallback: { value: { y: 'late' } } },
      b: { endpoint: bad, input: x, fallback: { value: { y: '$body.x' } } },
    };
    const { ask, metric } = await pipeline(nodes, ['$a.y', '$b.y']);
    expect((await ask()).json).toEqual(['late', [[1, 2, 3, 4]]]);
    expect((await metric('pipeline_nodes_total')).filter((line) => line.includes('outcome="fallback"'))).toHaveLength(
      2,
    );
    const strict = await pipeline({ a: { endpoint: late, input: x, timeoutMs: 40 } }, '$a');
    const answer = await strict.ask();
    expect([answer.status, answer.json.error.message]).toEqual([504, expect.stringContaining('node a: ')]);
    const hurried = await pipeline({ a: { endpoint: late, input: x } }, '$a');
    expect((await hurried.ask(undefined, { 'x-request-timeout-ms': '40' })).status).toBe(504);
    // the endpoint itself was late: that is what its own counts say
    const { text } = await at.router.send('/metrics');
    expect(text).toContain(`endpoint="${late}",version="1",arm="${late}",outcome="timeout"} 3`);
  });

  it('maps over a list, in order, with no more runs at once than the node may have', async () => {
    let running = 0;
    let most = 0;
    const one = await endpoint((...call) => {
      running += 1;
      most = Math.max(most, running);
      setTimeout(() => {
        running -= 1;
        right(...call);
      }, 5);
    });
    const map = { over: '$body.list', concurrency: 8 };
    const { ask } = await pipeline({ a: { endpoint: one, map, concurrency: 2, input: { x: '$item' } } }, { all: '$a[*].y[0][3]' }); // biome-ignore format: one row reads better
    const list = Array.from({ length: 6 }, () => [[1, 2, 3, 4]]);
    const answers = await Promise.all([ask({ list }), ask({ list })]);
    for (const answer of answers) expect(answer.json).toEqual({ all: [4, 4, 4, 4, 4, 4] });
    expect(most).toBe(2);
    const wrong = await ask({ list: 'x' });
    expect([wrong.status, wrong.json.error.message]).toEqual([400, expect.stringContaining('$body.list is no list')]);
  });

  it('gives all up when the client leaves', async () => {
    const closed: boolean[] = [];
    const held: ServerResponse[] = [];
    const waits = await endpoint((request, response) => {
      held.push(response);
      request.socket.on('close', () => closed.push(true));
    });
    const { name } = await pipeline({ a: { endpoint: waits, input: x } }, '$a');
    const gone = new AbortController();
    const body = JSON.stringify({ x: [[1]] });
    const asked = at.router.send(`/serve/${name}`, { method: 'POST', body, signal: gone.signal }).catch(() => 'gone');
    await until(() => held.length > 0, () => 'asked'); // biome-ignore format: one row reads better
    gone.abort();
    expect(await asked).toBe('gone');
    await until(() => closed.length > 0, () => 'given up'); // biome-ignore format: one row reads better
  });

  it('may be a node itself, and one that asks itself ends', async () => {
    const one = await endpoint(right, { access: 'key' });
    const inner = await pipeline({ a: { endpoint: one, input: x } }, { y: '$a.y' }, { access: 'key' });
    const outer = await pipeline({ b: { endpoint: inner.name } }, '$b.y');
    expect((await outer.ask()).json).toEqual([[1, 2, 3, 4]]);
    expect((await inner.ask()).status).toBe(401);
    const failed = await outer.ask({});
    expect(failed.json.error.message).toContain(
      `pipeline ${outer.name}: node b: pipeline ${inner.name}: node a: $body.x`,
    );
    const bound = (of: string) => ({ generation: 1, nodes: { a: { endpoint: of } }, output: '$a', modules: {} });
    const ring = await pipeline({ a: { endpoint: 'ring' } }, '$a');
    await at.add('ring', { arms: [], targets: [], access: 'public', timeoutMs: 5_000, maxBodyBytes: 1_000, idempotent: true, pipeline: bound(ring.name) }); // biome-ignore format: one row reads better
    const round = await ring.ask();
    expect([round.status, round.json.error.message]).toEqual([400, expect.stringContaining('8 deep')]);
  });

  it('says where it is asked wrongly', async () => {
    const one = await endpoint(right);
    const { name, ask } = await pipeline({ a: { endpoint: one, input: x }, b: { endpoint: 'nobody', when: { pick: '$body.b' } } }, ['$a', '$b']); // biome-ignore format: one row reads better
    expect((await ask()).json).toEqual([{ y: [[1, 2, 3, 4]] }, null]);
    expect((await ask({ x: [[1]], b: 1 })).json.error.message).toContain('node b: there is no endpoint nobody');
    expect((await at.router.post(`/serve/${name}/3`, {})).json.error.message).toContain('has no versions to ask for');
    const infer = await at.router.post(`/v2/models/${name}/infer`, { inputs: [] });
    expect([infer.status, infer.text]).toEqual([400, expect.stringContaining(`is a pipeline: it takes and answers JSON, at /serve/${name} alone`)]); // biome-ignore format: one row reads better
    expect((await ask('{"x":')).status).toBe(400);
    expect((await ask({})).json.error.message).toBe(`pipeline ${name}: node a: $body.x: the request's body has nothing there`); // biome-ignore format: one row reads better
    expect((await ask({ x: 'y'.repeat(1_100_000) })).status).toBe(413);
  });

  it('keeps one trace and the request id over its nodes, and hands a form on as it came', async () => {
    const seen: string[] = [];
    const one = await endpoint((request, response, body) => {
      seen.push(String(request.headers['traceparent'] ?? ''));
      right(request, response, body);
    });
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const { ask } = await pipeline({ a: { endpoint: one, input: x } }, '$a.y');
    const answer = await ask(undefined, { traceparent: trace, 'x-request-id': 'r-1' });
    expect([answer.status, answer.headers.get('x-request-id')]).toEqual([200, 'r-1']);
    for (const header of seen) expect(header === '' || header.startsWith(trace.slice(0, 36))).toBe(true);
    const form = new FormData();
    form.set('x', new Blob(['[[1, 2, 3, 4]]'], { type: 'application/json' }));
    const whole = await pipeline({ a: { endpoint: one, input: { x: '$body.x' } } }, '$a.y');
    const reply = await at.router.send(`/serve/${whole.name}`, { method: 'POST', body: form });
    expect([reply.status, reply.json]).toEqual([200, [[1, 2, 3, 4]]]);
  });
});

describe('modules of a pipeline', () => {
  const bound = (code: string, isolation: 'inline' | 'worker' = 'worker'): BoundProcessing => {
    const file = at.router.control.addBlob('module.mjs', Buffer.from(code));
    const facts = { hooks: ['process' as const], body: 'json' as const };
    return { module: { name: 'm', number: 1, digest: file.sha256, facts, files: [file] }, isolation, options: {} };
  };
  const swap = async (name: string, generation: number, modules: Record<string, BoundProcessing>) => {
    const one = { arms: [], targets: [], access: 'public' as const, timeoutMs: 10_000, maxBodyBytes: 1_000_000, idempotent: true }; // biome-ignore format: one row reads better
    const nodes = Object.fromEntries(Object.keys(modules).map((node) => [node, { module: 'm' }]));
    const output = Object.fromEntries(Object.keys(modules).map((node) => [node, `$${node}`]));
    await at.add(name, { ...one, pipeline: { generation, nodes, output, modules } });
  };
  const says = (word: string) => `export default { process: (body) => ({ ${word}: body }) }`;

  it('are changed under load without a failed request, and what cannot be loaded leaves the one before', async () => {
    const name = fresh('p');
    await swap(name, 1, { a: bound(says('v1')), b: bound(says('v1'), 'inline') });
    await until(async () => (await at.router.post(`/serve/${name}`, 1)).status === 200, () => 'served'); // biome-ignore format: one row reads better
    expect((await at.router.post(`/serve/${name}`, 7)).json).toEqual({ a: { v1: 7 }, b: { v1: 7 } });
    const load = new ClosedLoad(4, () => at.router.post(`/serve/${name}`, { x: 1 }));
    for (let generation = 2; generation <= 6; generation += 1) {
      await swap(name, generation, { a: bound(says(`v${generation}`)), b: bound(says(`v${generation}`), 'inline') });
      await until(async () => (await at.router.post(`/serve/${name}`, 1)).json.a?.[`v${generation}`] === 1, () => `generation ${generation}`); // biome-ignore format: one row reads better
    }
    await swap(name, 7, { a: bound('throw new Error("no")'), b: bound(says('v7'), 'inline') });
    await at.router.untilReport(({ problems }) => Object.values(problems).some((words) => words.includes('no')));
    expect((await at.router.post(`/serve/${name}`, 1)).json).toEqual({ a: { v6: 1 }, b: { v6: 1 } });
    await load.stop();
    expect([load.failures, load.sent > 20]).toEqual([[], true]);
    await swap(name, 8, { a: bound(says('v8')) });
    await until(async () => (await at.router.post(`/serve/${name}`, 1)).json.a?.v8 === 1, () => 'generation 8'); // biome-ignore format: one row reads better
  });

  it('are what its readiness waits for', async () => {
    const name = fresh('p');
    const ready = () => at.router.send(`/v2/models/${name}/ready`);
    await swap(name, 1, { a: bound('throw new Error("never")') });
    const not = await ready();
    expect([not.status, not.json.error]).toEqual([503, expect.stringContaining('node a: its module is not loaded')]);
    await swap(name, 2, { a: bound(says('v2')) });
    await until(async () => (await ready()).status === 200, () => 'ready'); // biome-ignore format: one row reads better
    expect((await at.router.post(`/serve/${name}`, 7)).json).toEqual({ a: { v2: 7 } });
  });

  it('have a context of their own: other endpoints with the key of the client, and no model', async () => {
    const open = await endpoint(right);
    const closed = await endpoint(right, { access: 'key' });
    const name = fresh('p');
    const code = `export default {
      async process(body, _state, ctx) {
        if (body.infer) return ctx.infer({});
        return { answer: await ctx.serve(body.ask, { x: [[1, 2, 3, 4]] }, { trusted: true }), endpoint: ctx.endpoint, trace: ctx.headers.traceparent };
      },
    }`;
    await swap(name, 1, { a: bound(code) });
    await until(async () => (await at.router.post(`/serve/${name}`, { ask: open })).status === 200, () => 'served'); // biome-ignore format: one row reads better
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const asked = await at.router.post(`/serve/${name}`, { ask: open }, { traceparent: trace });
    expect(asked.json.a).toMatchObject({ answer: { y: [[1, 2, 3, 4]] }, endpoint: name });
    expect(asked.json.a.trace.slice(0, 36)).toBe(trace.slice(0, 36));
    expect(asked.json.a.trace).not.toBe(trace);
    const refused = await at.router.post(`/serve/${name}`, { ask: closed });
    expect([refused.status, refused.json.error.message]).toEqual([401, expect.stringContaining(`pipeline ${name}: node a: `)]); // biome-ignore format: one row reads better
    const infer = await at.router.post(`/serve/${name}`, { infer: true });
    expect(infer.json.error.message).toContain('has no model to ask');
  });
});
