import { type BoundPipeline, nodeInput, nodeWaits, type PipelineNode } from '@perch/contracts';
import { readCondition } from './condition.ts';
import { type PickScope, type ReadValue, readPick, readValue } from './pick-value.ts';

/** One node, read once for all requests. */
export interface CompiledNode {
  name: string;
  spec: PipelineNode;
  /** Nodes that must be done before it. */
  waits: readonly string[];
  input: ReadValue;
  when: ((scope: PickScope) => boolean) | undefined;
  /** `when` asks about the item: then it is asked for each. */
  whenEach: boolean;
  over: ReadValue | undefined;
  fallback: ReadValue | undefined;
}

export interface CompiledPipeline {
  name: string;
  nodes: readonly CompiledNode[];
  output: ReadValue;
}

function compileNode(name: string, spec: PipelineNode, waits: ReadonlySet<string>): CompiledNode {
  const { when, map, fallback } = spec;
  return {
    name,
    spec,
    waits: [...waits],
    input: readValue(nodeInput(spec) as Parameters<typeof readValue>[0]),
    when: when && readCondition(when),
    whenEach: map !== undefined && when !== undefined && /^\$(item|index)\b/.test(when.pick),
    over: map && readPick(map.over),
    fallback: fallback && readValue(fallback.value),
  };
}

/** Of a checked spec. */
export function compilePipeline(
  name: string,
  { nodes, output }: Pick<BoundPipeline, 'nodes' | 'output'>,
): CompiledPipeline {
  const waits = nodeWaits(nodes);
  return {
    name,
    nodes: Object.entries(nodes).map(([node, spec]) => compileNode(node, spec, waits.get(node)!)),
    output: readValue(output),
  };
}
