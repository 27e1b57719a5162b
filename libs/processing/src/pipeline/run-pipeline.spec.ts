import { AppError, type PipelineNode, type PipelineValue } from '@perch/contracts/plain';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePipeline } from './compiled-pipeline.ts';
import { NodeLimit } from './node-limit.ts';
import { type NodeTrace, type NodeTurn, runPipeline } from './run-pipeline.ts';

type Work = (turn: NodeTurn) => unknown;
const nodeOf = (spec: Partial<PipelineNode> = {}): PipelineNode => ({ endpoint: 'x', ...spec });

async function run(
  nodes: Record<string, PipelineNode>,
  output: PipelineValue,
  work: Work,
  more: { body?: unknown; timeoutMs?: number; signal?: AbortSignal } = {},
) {
  const traces: NodeTrace[] = [];
  const { body = null, timeoutMs = 60_000, signal = new AbortController().signal } = more;
  const answer = runPipeline(
    compilePipeline('p/q', { nodes, output }),
    { body, deadlineAt: performance.now() + timeoutMs, signal },
    { run: async (turn) => work(turn), now: () => performance.now(), ended: (trace) => void traces.push(trace) },
  );
  const value = await answer.catch((error: unknown) => error);
  return { value, outcomes: Object.fromEntries(traces.map(({ node, outcome }) => [node, outcome])), traces };
}
const never = ({ signal }: NodeTurn) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))); // biome-ignore format: one row reads better

describe('values', () => {
  const echo: Work = ({ body }) => body;
  it.each<[string, PipelineValue, unknown, unknown]>([
    ['the whole body', '$body', [1], [1]],
    ['a field', '$body.a', { a: { b: 1 } }, { b: 1 }],
    ['the last one', '$body[-1]', [1, 2], 2],
    ['each one', { x: '$body.l[*].s' }, { l: [{ s: 1 }, { s: 2 }] }, { x: [1, 2] }],
    ['a text with $', '$$body', 1, '$body'],
    ['nothing in a null', '$body.a.b.c', { a: null }, null],
    ['what may be absent', '$body.a?', {}, null],
    ['bytes as they are', '$body.f', { f: Buffer.from('x') }, Buffer.from('x')],
    ['no field of what every object has', '$body.constructor?', {}, null],
  ])('%s', async (_what, input, body, wanted) => {
    expect((await run({ a: nodeOf({ input }) }, '$a', echo, { body })).value).toEqual(wanted);
  });

  it('what the client left out is its own fault, what a node left out is not', async () => {
    const { value } = await run({ a: nodeOf({ input: '$body.image' }) }, '$a', echo, { body: {} });
    expect(value).toMatchObject({ code: 'invalid', message: "pipeline p/q: node a: $body.image: the request's body has nothing there" }); // biome-ignore format: one row reads better
    const nodes = { a: nodeOf(), b: nodeOf({ input: '$a.boxs' }) };
    expect((await run(nodes, '$b', () => ({ boxes: [] }))).value).toMatchObject({
      code: 'upstream',
      message: 'pipeline p/q: node b: $a.boxs: what a answered has nothing there',
    });
    expect((await run({ a: nodeOf() }, '$a.x', () => ({}))).value).toMatchObject({ code: 'upstream', message: expect.stringContaining('$a.x') }); // biome-ignore format: one row reads better
  });
});

describe('conditions', () => {
  const asked = async (when: object, body: unknown) =>
    (await run({ a: nodeOf({ when: { pick: '$body.x', ...when } }) }, '$a', () => 'ran', { body })).value === 'ran';
  it.each<[object, unknown, boolean]>([
    [{}, { x: 1 }, true], [{}, { x: 0 }, false], [{}, { x: [] }, false], [{}, {}, false], [{}, { x: '' }, false], [{}, { x: {} }, false],
    [{ equals: 'a' }, { x: 'a' }, true], [{ equals: [1, { a: 2 }] }, { x: [1, { a: 2 }] }, true], [{ equals: null }, {}, true],
    [{ notEquals: 'a' }, { x: 'a' }, false], [{ notEquals: 'a' }, {}, true],
    [{ above: 0.5 }, { x: 0.6 }, true], [{ above: 0.5 }, { x: 0.5 }, false], [{ above: 0.5 }, { x: '9' }, false],
    [{ above: 0, below: 1 }, { x: 0.5 }, true], [{ above: 0, below: 1 }, { x: 2 }, false],
    [{ exists: true }, { x: 0 }, true], [{ exists: false }, {}, true], [{ exists: true }, {}, false],
  ])('%j of %j: %j', async (when, body, wanted) => expect(await asked(when, body)).toBe(wanted)); // biome-ignore format: a table

  it('a node that is skipped is null to who uses it, and says so', async () => {
    const nodes = { a: nodeOf({ when: { pick: '$body.ocr' } }), b: nodeOf({ input: { text: '$a.text' } }) };
    const { value, outcomes } = await run(nodes, ['$a', '$b'], ({ body }) => body, { body: {} });
    expect(value).toEqual([null, { text: null }]);
    expect(outcomes).toEqual({ a: 'skipped', b: 'ok' });
  });
});

describe('a list', () => {
  const over = (more: object = {}) => ({ map: { over: '$body.l', concurrency: 3 }, input: '$item', ...more });
  it('keeps the order, and runs no more at once than it says', async () => {
    let running = 0;
    let most = 0;
    const work: Work = async ({ body }) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((done) => setTimeout(done, 5 - ((body as number) % 5)));
      running -= 1;
      return (body as number) * 10;
    };
    const { value, traces } = await run({ a: nodeOf(over()) }, '$a', work, { body: { l: [...Array(12).keys()] } });
    expect(value).toEqual([...Array(12).keys()].map((n) => n * 10));
    expect(most).toBe(3);
    expect(traces[0]).toMatchObject({ outcome: 'ok', runs: 12 });
  });

  it.each<[string, object, unknown, unknown, string]>([
    ['no items', {}, { l: [] }, [], 'skipped'],
    ['null', {}, { l: null }, null, 'skipped'],
    ['asked of each', { when: { pick: '$item', above: 1 } }, { l: [1, 2, 3] }, [null, 20, 30], 'ok'],
    ['with its place', { input: ['$index', '$item'] }, { l: ['a'] }, [[0, 'a']], 'ok'],
  ])('%s', async (_what, more, body, wanted, outcome) => {
    const work: Work = (turn) => (typeof turn.body === 'number' ? turn.body * 10 : turn.body);
    const found = await run({ a: nodeOf(over(more)) }, '$a', work, { body });
    expect([found.value, found.outcomes]).toEqual([wanted, { a: outcome }]);
  });

  it('an item that fails is named, and ends the rest; a fallback stands in for that item alone', async () => {
    const work: Work = ({ body }) => {
      if (body === 2) throw new AppError('upstream', 'it broke');
      return body;
    };
    const body = { l: [1, 2, 3] };
    const failed = await run({ a: nodeOf(over()) }, '$a', work, { body });
    expect(failed.value).toMatchObject({ code: 'upstream', message: 'pipeline p/q: node a: item 1: it broke' });
    const fallback = { value: { was: '$item' } };
    const spared = await run({ a: nodeOf(over({ fallback })) }, '$a', work, { body });
    expect([spared.value, spared.outcomes]).toEqual([[1, { was: 2 }, 3], { a: 'fallback' }]);
  });

  it('what is no list is said', async () => {
    const { value } = await run({ a: nodeOf(over()) }, '$a', () => 1, { body: { l: 'abc' } });
    expect(value).toMatchObject({ code: 'invalid', message: 'pipeline p/q: node a: map.over $body.l is no list but a string' }); // biome-ignore format: one row reads better
  });
});

describe('a node that fails', () => {
  it('ends the others, keeps its code and is named', async () => {
    const signals: boolean[] = [];
    const nodes = { a: nodeOf(), b: nodeOf(), c: nodeOf({ input: ['$a', '$b'] }) };
    const { value, outcomes } = await run(nodes, '$c', (turn) => {
      if (turn.node === 'a') throw new AppError('too_large', 'too big');
      turn.signal.addEventListener('abort', () => signals.push(true));
      return never(turn);
    });
    expect(value).toMatchObject({ code: 'too_large', message: 'pipeline p/q: node a: too big' });
    expect(signals).toEqual([true]);
    await Promise.resolve();
    expect(outcomes).toEqual({ a: 'too_large', b: 'cancelled' });
  });

  it('shows nothing of an error that is not ours', async () => {
    const { value } = await run({ a: nodeOf() }, '$a', () => {
      throw new Error('secret');
    });
    expect(value).toMatchObject({ code: 'internal', message: 'pipeline p/q: node a: internal error' });
  });

  it('or is late has its fallback, with what is there', async () => {
    const nodes = { b: nodeOf(), a: nodeOf({ timeoutMs: 5, after: ['b'], fallback: { value: { from: '$b' } } }) };
    const { value, outcomes } = await run(nodes, '$a', (turn) => (turn.node === 'b' ? 1 : never(turn)));
    expect([value, outcomes]).toEqual([{ from: 1 }, { a: 'fallback', b: 'ok' }]);
  });

  it('late without one: timeout', async () => {
    const { value } = await run({ a: nodeOf({ timeoutMs: 5 }) }, '$a', never);
    expect(value).toMatchObject({ code: 'timeout', message: 'pipeline p/q: node a: gave no answer within 5 ms' });
  });

  it('has no more time than the request', async () => {
    const { value } = await run({ a: nodeOf({ timeoutMs: 1_000 }) }, '$a', never, { timeoutMs: 5 });
    expect(value).toMatchObject({ code: 'timeout' });
  });

  it('is given up with the request, whatever stands in for it', async () => {
    const gone = new AbortController();
    const nodes = { a: nodeOf({ fallback: { value: 1 } }) };
    const answer = run(nodes, '$a', never, { signal: gone.signal });
    gone.abort();
    expect((await answer).value).toMatchObject({ code: 'cancelled' });
    expect((await run(nodes, '$a', never, { signal: gone.signal })).value).toMatchObject({ code: 'cancelled' });
  });
});

/** Graphs without cycles: each node may wait for those before it. */
const graphs = fc
  .array(fc.array(fc.nat(30), { maxLength: 4 }), { minLength: 1, maxLength: 16 })
  .map((wishes) => wishes.map((wish, at) => [...new Set(wish.filter((other) => other < at))]));

describe('the schedule of any graph', () => {
  const nodesOf = (graph: number[][]) =>
    Object.fromEntries(graph.map((waits, at) => [`n${at}`, nodeOf({ input: waits.map((other) => `$n${other}`) })]));
  const all = (graph: number[][]) => graph.map((_, at) => `$n${at}`);

  it('runs each node once, after all it waits for, with their results, and as soon as they are there', async () => {
    await fc.assert(
      fc.asyncProperty(graphs, fc.infiniteStream(fc.nat()), async (graph, picks) => {
        const begun: string[] = [];
        const ended = new Set<string>();
        const open = new Map<string, (value: unknown) => void>();
        const values = new Map<string, unknown>();
        const work: Work = ({ node, body }) => {
          begun.push(node);
          const waits = graph[Number(node.slice(1))]!.map((other) => `n${other}`);
          expect(waits.every((name) => ended.has(name))).toBe(true);
          expect(body).toEqual(waits.map((name) => values.get(name)));
          return new Promise((resolve) => open.set(node, resolve));
        };
        const answer = run(nodesOf(graph), all(graph), work);
        while (ended.size < graph.length) {
          for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
          const ready = graph.flatMap((waits, at) => (waits.every((other) => ended.has(`n${other}`)) && !ended.has(`n${at}`) ? [`n${at}`] : [])); // biome-ignore format: one row reads better
          expect([...open.keys()].sort()).toEqual(ready.sort());
          const names = [...open.keys()];
          const name = names[picks.next().value! % names.length]!;
          values.set(name, { by: name });
          ended.add(name);
          open.get(name)!(values.get(name));
          open.delete(name);
        }
        expect((await answer).value).toEqual(graph.map((_, at) => ({ by: `n${at}` })));
        expect(new Set(begun).size).toBe(begun.length);
      }),
      { numRuns: 200 },
    );
  });

  it('whichever node fails, the error is of a node that failed, and nothing that waits for it begins', async () => {
    await fc.assert(
      fc.asyncProperty(graphs, fc.nat(), async (graph, pick) => {
        const bad = `n${pick % graph.length}`;
        const begun = new Set<string>();
        const { value } = await run(nodesOf(graph), all(graph), ({ node }) => {
          begun.add(node);
          if (node === bad) throw new AppError('upstream', 'broken');
          return node;
        });
        expect(value).toMatchObject({ code: 'upstream', message: `pipeline p/q: node ${bad}: broken` });
        const behind = graph.flatMap((waits, at) => (waits.includes(Number(bad.slice(1))) ? [`n${at}`] : []));
        expect(behind.filter((name) => begun.has(name))).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });
});

it('a limit holds over all requests, serves in order, and forgets who gave up', async () => {
  const limit = new NodeLimit(1);
  const stays = new AbortController().signal;
  const order: number[] = [];
  await limit.enter(stays);
  const gone = new AbortController();
  const left = limit.enter(gone.signal).catch((error: unknown) => error);
  const next = [1, 2].map((one) => limit.enter(stays).then(() => order.push(one)));
  gone.abort('left');
  expect(await left).toBe('left');
  limit.leave();
  await next[0];
  expect(order).toEqual([1]);
  limit.leave();
  await next[1];
  expect(order).toEqual([1, 2]);
});
