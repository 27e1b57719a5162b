import type { FieldFault } from './parse.ts';
import type { PipelineNode } from './pipeline-document.ts';
import { type Pick, pickRoots, picksIn } from './pipeline-pick.ts';

interface Graphed {
  name: string;
  nodes: Record<string, PipelineNode>;
  output: unknown;
  limits: { timeoutMs: number };
}

interface Found {
  path: string;
  pick: Pick | string;
}

/** What a node is given when its spec does not say: the pipeline's own body. */
export const nodeInput = (node: PipelineNode): unknown => node.input ?? '$body';

function picksOf(node: PipelineNode, path: string): Found[] {
  const { when, map, fallback } = node;
  return [
    ...picksIn(nodeInput(node), `${path}.input`),
    ...(when ? picksIn(when.pick, `${path}.when.pick`) : []),
    ...(map ? picksIn(map.over, `${path}.map.over`) : []),
    ...(fallback ? picksIn(fallback.value, `${path}.fallback.value`) : []),
  ];
}

const namePattern = /^[a-z][A-Za-z0-9_]{0,63}$/;
const isNode = (root: string) => !(pickRoots as readonly string[]).includes(root);
const rootsOf = (found: readonly Found[]) =>
  found.flatMap(({ pick }) => (typeof pick !== 'string' && isNode(pick.root) ? [pick.root] : []));

/** The nodes that each one waits for: those that its picks point at, and those in `after`. */
export function nodeWaits(nodes: Record<string, PipelineNode>): Map<string, Set<string>> {
  const of = (node: PipelineNode) => new Set([...rootsOf(picksOf(node, '')), ...(node.after ?? [])]);
  return new Map(Object.entries(nodes).map(([name, node]) => [name, of(node)]));
}

/** Nodes in levels: each waits only for nodes of the levels before it. A cycle's nodes are in none. */
export function nodeLevels(waits: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const done = new Set<string>();
  const levels: string[][] = [];
  for (;;) {
    const next = [...waits.keys()].filter((name) => !done.has(name) && [...waits.get(name)!].every((one) => done.has(one))); // biome-ignore format: one row reads better
    if (next.length === 0) return levels;
    levels.push(next);
    for (const name of next) done.add(name);
  }
}

/** The nodes of one cycle in their order, the first one again at its end; undefined: there is none. */
export function findCycle(waits: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const free = new Set(nodeLevels(waits).flat());
  let at = [...waits.keys()].find((name) => !free.has(name));
  const path: string[] = [];
  while (at !== undefined && !path.includes(at)) {
    path.push(at);
    at = [...waits.get(at)!].find((name) => waits.has(name) && !free.has(name));
  }
  // read from what is waited for to who waits, as the work flows
  return at === undefined ? undefined : [...path.slice(path.indexOf(at)), at].reverse();
}

function pickFaults(found: readonly Found[], { nodes }: Graphed, inMap: boolean): FieldFault[] {
  return found.flatMap(({ path, pick }) => {
    if (typeof pick === 'string') return [{ path, message: pick }];
    const { root, text } = pick;
    if ((root === 'item' || root === 'index') && !inMap)
      return [{ path, message: `${text}: there is an item only in a node with map, in its input, when and fallback` }];
    if (isNode(root) && !Object.hasOwn(nodes, root))
      return [{ path, message: `${text}: there is no node ${root}; there are ${Object.keys(nodes).join(', ')}` }];
    return [];
  });
}

/** What one node may not say although each field by itself is fine. */
function nodeFaults(name: string, node: PipelineNode, graph: Graphed): FieldFault[] {
  const path = `nodes.${name}`;
  const faults: FieldFault[] = [];
  const add = (field: string, message: string) => faults.push({ path: `${path}.${field}`, message });
  if (!namePattern.test(name))
    faults.push({ path, message: 'a node is named by 1 to 64 of A-Z a-z 0-9 _, starting with a lower-case letter' });
  if (!isNode(name)) faults.push({ path, message: `$${name} is no node's result: choose another name` });
  if (node.endpoint === graph.name) add('endpoint', `${graph.name} is the pipeline itself`);
  if (node.map && !node.map.over.startsWith('$')) add('map.over', 'wants a pick of a list, such as $detect.boxes');
  if (node.when && !node.when.pick.startsWith('$')) add('when.pick', 'wants a pick, such as $detect.found');
  const belongs = (fields: readonly (keyof PipelineNode)[], to: 'endpoint' | 'module', why: string) => {
    for (const field of fields) if (node[field] !== undefined && !node[to]) add(field, `goes with ${to}${why}`);
  };
  belongs(['version'], 'endpoint', '; a module is given as name@number');
  belongs(['instances', 'device'], 'endpoint', ": a module runs in the routers' own processes");
  belongs(['isolation', 'options'], 'module', '; those of an endpoint are its own');
  if (node.timeoutMs !== undefined && node.timeoutMs > graph.limits.timeoutMs)
    add('timeoutMs', `${node.timeoutMs} is above limits.timeoutMs ${graph.limits.timeoutMs} of the pipeline`);
  for (const [at, other] of (node.after ?? []).entries())
    if (!Object.hasOwn(graph.nodes, other)) add(`after.${at}`, `there is no node ${other}`);
  const picks = picksOf(node, path);
  const own = (found: Found) => found.path.startsWith(`${path}.map.`);
  faults.push(...pickFaults(picks.filter(own), graph, false));
  faults.push(...pickFaults(picks.filter((found) => !own(found)), graph, node.map !== undefined)); // biome-ignore format: one row reads better
  return faults;
}

/** All that speaks against a pipeline by itself: bad picks, unknown nodes, cycles, nodes that nobody uses. */
export function pipelineFaults(graph: Graphed): FieldFault[] {
  const output = picksIn(graph.output, 'output');
  const faults = [
    ...Object.entries(graph.nodes).flatMap(([name, node]) => nodeFaults(name, node, graph)),
    ...pickFaults(output, graph, false),
  ];
  const waits = nodeWaits(graph.nodes);
  const cycle = findCycle(waits);
  if (cycle)
    faults.push({
      path: `nodes.${cycle[0]}`,
      message: `a cycle: ${cycle.join(' -> ')}; a node may only use what is there before it`,
    });
  if (faults.length > 0) return faults;
  const used = new Set([...rootsOf(output), ...[...waits.values()].flatMap((names) => [...names])]);
  for (const name of waits.keys())
    if (!used.has(name))
      faults.push({ path: `nodes.${name}`, message: 'nobody uses its result: pick it in output, or take it out' });
  return faults;
}
