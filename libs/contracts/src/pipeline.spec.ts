import { describe, expect, it } from 'vitest';
import { AppError } from './error.ts';
import { parseWith } from './parse.ts';
import { pipelineSpec } from './pipeline.schema.ts';
import { nodeLevels, nodeWaits } from './pipeline-graph.ts';
import { parsePick } from './pipeline-pick.ts';

const words = (nodes: unknown, output: unknown = '$a', more: object = {}): string => {
  try {
    parseWith(pipelineSpec, { kind: 'Pipeline', name: 'p/q', nodes, output, ...more }, 'pipeline spec');
  } catch (error) {
    return (error as AppError).message;
  }
  return 'fine';
};
const a = { endpoint: 'x' };

describe('what a pipeline may not say', () => {
  it.each<[string, string, string]>([
    ['nothing', words({ a }), 'fine'],
    ['no node', words({}, 1), 'nodes: wants at least one node'],
    ['neither endpoint nor module', words({ a: {} }), 'nodes.a: give either endpoint or module'],
    ['both', words({ a: { endpoint: 'x', module: 'm' } }), 'nodes.a: give either endpoint or module'],
    ['an unknown field', words({ a: { ...a, retries: 3 } }), 'nodes.a: Unrecognized key: "retries"'],
    ['a bad pick', words({ a: { ...a, input: { x: '$body..y' } } }), 'nodes.a.input.x: "$body..y" is no pick: wants $body,'],
    ['a lone $', words({ a: { ...a, input: '$' } }), 'nodes.a.input: "$" is no pick'],
    ['an open bracket', words({ a: { ...a, input: '$body[0' } }), '"$body[0" is no pick'],
    ['an unknown node', words({ a: { ...a, input: '$b.x' } }), 'nodes.a.input: $b.x: there is no node b; there are a'],
    ['a name every object has', words({ a: { ...a, input: '$constructor' } }), 'there is no node constructor'],
    ['an unknown node in output', words({ a }, ['$a', '$z']), 'output.1: $z: there is no node z; there are a'],
    ['an unknown node in after', words({ a: { ...a, after: ['z'] } }), 'nodes.a.after.0: there is no node z'],
    ['itself', words({ a: { ...a, input: '$a' } }), 'nodes.a: a cycle: a -> a; a node may only use what is there before it'],
    [
      'a cycle',
      words({ a: { ...a, input: '$c' }, b: { ...a, input: '$a' }, c: { ...a, input: '$b' }, d: { ...a, input: '$c' } }, '$d'),
      'a cycle: a -> b -> c -> a',
    ],
    ['a cycle by after', words({ a: { ...a, after: ['b'] }, b: { ...a, input: '$a' } }), 'a cycle: a -> b -> a'],
    ['a cycle by a condition', words({ a: { ...a, when: { pick: '$b' } }, b: { ...a, input: '$a' } }), 'a cycle: '],
    ['a node that nobody uses', words({ a, b: a }), 'nodes.b: nobody uses its result: pick it in output, or take it out'],
    ['an item without a list', words({ a: { ...a, input: '$item' } }), 'nodes.a.input: $item: there is an item only in a node with map'],
    ['an item as its own list', words({ a: { ...a, map: { over: '$item' } } }), 'nodes.a.map.over: $item: there is an item only'],
    ['a list that is none', words({ a: { ...a, map: { over: 'boxes' } } }), 'nodes.a.map.over: wants a pick of a list'],
    ['a condition on nothing', words({ a: { ...a, when: { pick: 'x' } } }), 'nodes.a.when.pick: wants a pick'],
    ['itself as an endpoint', words({ a: { endpoint: 'p/q' } }), 'nodes.a.endpoint: p/q is the pipeline itself'],
    ['a version of a module', words({ a: { module: 'm', version: 2 } }), 'nodes.a.version: goes with endpoint; a module is given as name@number'],
    ['instances of a module', words({ a: { module: 'm', instances: 2 } }), "nodes.a.instances: goes with endpoint: a module runs in the routers' own"],
    ['a device for a module', words({ a: { module: 'm', device: 'gpu' } }), 'nodes.a.device: goes with endpoint'],
    ['options of an endpoint', words({ a: { ...a, options: {} } }), 'nodes.a.options: goes with module; those of an endpoint are its own'],
    ['isolation of an endpoint', words({ a: { ...a, isolation: 'process' } }), 'nodes.a.isolation: goes with module'],
    ['more time than there is', words({ a: { ...a, timeoutMs: 2000 } }, '$a', { limits: { timeoutMs: 1000 } }), 'nodes.a.timeoutMs: 2000 is above limits.timeoutMs 1000'],
    ['a node called body', words({ body: a }, '$body'), "nodes.body: $body is no node's result: choose another name"],
    ['a name with a dash', words({ 'a-b': a }), 'a node is named by 1 to 64'],
  ])('%s', (_what, said, wanted) => expect(said).toContain(wanted)); // biome-ignore format: a table

  it('names the path of each fault', () => {
    const parsed = pipelineSpec.safeParse({
      kind: 'Pipeline',
      name: 'p',
      nodes: { a: { ...a, input: '$z' } },
      output: '$y',
    });
    expect(parsed.error!.issues.map(({ path }) => path.join('.'))).toEqual(['nodes.a.input', 'output']);
  });
});

describe('picks', () => {
  it.each([
    ['$body', 'body', [], false],
    ['$detect.boxes[0]["a \\"b\\""][-1]?', 'detect', [{ field: 'boxes' }, { index: 0 }, { field: 'a "b"' }, { index: -1 }], true],
    ['$a[*].x-y', 'a', ['all', { field: 'x-y' }], false],
  ])('%s', (text, root, steps, optional) => expect(parsePick(text)).toEqual({ text, root, steps, optional })); // biome-ignore format: a table
});

it('levels hold who waits for nobody of its own level', () => {
  const nodes = { a, b: { ...a, input: { x: '$a', y: '$c' } }, c: a, d: { ...a, after: ['b'] } };
  expect(nodeLevels(nodeWaits(nodes))).toEqual([['a', 'c'], ['b'], ['d']]);
});
