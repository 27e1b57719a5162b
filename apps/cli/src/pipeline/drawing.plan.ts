import { nodeInput, nodeLevels, nodeWaits, type PipelineNode, type PipelineSpec, picksIn } from '@perch/contracts';

const rootsOf = (value: unknown): string[] => {
  const roots = picksIn(value, '').flatMap(({ pick }) => (typeof pick === 'string' ? [] : [pick.root]));
  return [...new Set(roots)];
};

/** What a node, or the output, is made from: `body` and nodes. */
function sourcesOf(node: PipelineNode): string[] {
  const { when, map, fallback, after = [] } = node;
  const roots = [nodeInput(node), when?.pick, map?.over, fallback?.value].flatMap(rootsOf);
  return [...new Set([...roots, ...after])].filter((root) => root !== 'item' && root !== 'index');
}

const runsText = ({ endpoint, version, module }: PipelineNode): string =>
  endpoint === undefined ? `module ${module}` : `endpoint ${endpoint}${version === undefined ? '' : `/${version}`}`;

export function conditionText({
  pick,
  equals,
  notEquals,
  above,
  below,
  exists,
}: NonNullable<PipelineNode['when']>): string {
  const asked = [
    ...(equals === undefined ? [] : [`= ${JSON.stringify(equals)}`]),
    ...(notEquals === undefined ? [] : [`is not ${JSON.stringify(notEquals)}`]),
    ...(above === undefined ? [] : [`> ${above}`]),
    ...(below === undefined ? [] : [`< ${below}`]),
    ...(exists === undefined ? [] : [exists ? 'is there' : 'is not there']),
  ];
  return [pick, asked.join(' and ')].filter((words) => words !== '').join(' ');
}

function howText({ map, when, timeoutMs, concurrency, instances, device, fallback }: PipelineNode): string[] {
  return [
    ...(map ? [`each of ${map.over}, ${map.concurrency} at once`] : []),
    ...(when ? [`when ${conditionText(when)}`] : []),
    ...(timeoutMs === undefined ? [] : [`within ${timeoutMs} ms`]),
    ...(concurrency === undefined ? [] : [`${concurrency} at once in a router`]),
    ...(instances === undefined ? [] : [`${instances} instances`]),
    ...(device === undefined ? [] : [device]),
    ...(fallback ? [`else ${JSON.stringify(fallback.value)}`] : []),
  ];
}

interface Line {
  step: string;
  node: string;
  runs: string;
  from: string[];
}

const columns = (lines: readonly Line[], of: (line: Line) => string) => Math.max(...lines.map((line) => of(line).length)); // biome-ignore format: one row reads better

/** The nodes step by step; those of one step run side by side. */
export function drawText(spec: PipelineSpec): string {
  const levels = nodeLevels(nodeWaits(spec.nodes));
  const lines: Line[] = levels.flatMap((names, level) =>
    names.map((name, at) => {
      const node = spec.nodes[name]!;
      const runs = [runsText(node), ...howText(node)].join(', ');
      return { step: at === 0 ? `step ${level + 1}` : '', node: name, runs, from: sourcesOf(node) };
    }),
  );
  lines.push({ step: 'output', node: '', runs: JSON.stringify(spec.output), from: rootsOf(spec.output) });
  const [step, node, runs] = [({ step }: Line) => step, ({ node }: Line) => node, ({ runs }: Line) => runs].map((of) => columns(lines, of)); // biome-ignore format: one row reads better
  return lines
    .map((line) => `${line.step.padEnd(step!)}  ${line.node.padEnd(node!)}  ${line.runs.padEnd(Math.min(runs!, 60))}  <- ${line.from.join(', ') || 'nothing'}`) // biome-ignore format: one row reads better
    .join('\n');
}

const quoted = (text: string) => `"${text.replace(/"/g, '#quot;')}"`;
const idOf = (name: string) => (name === 'body' || name === 'output' ? name : `n_${name}`);

/** A Mermaid flowchart; conditions stand on the nodes. */
export function drawMermaid(spec: PipelineSpec): string {
  const lines = ['flowchart LR', '  body([body])', '  output([output])'];
  for (const [name, node] of Object.entries(spec.nodes)) {
    const words = [name, runsText(node), ...howText(node)].join('<br/>');
    const shape = node.map ? `[[${quoted(words)}]]` : node.when ? `{{${quoted(words)}}}` : `[${quoted(words)}]`;
    lines.push(`  ${idOf(name)}${shape}`);
    for (const from of sourcesOf(node)) lines.push(`  ${idOf(from)} --> ${idOf(name)}`);
  }
  for (const from of rootsOf(spec.output)) lines.push(`  ${idOf(from)} --> output`);
  return lines.join('\n');
}
