import type { Pipeline, PipelineGeneration, PipelineNodeSight } from '@perch/contracts';
import { formatAge } from '../duration.ts';
import { factsText, type Shown, shownList, tableText } from '../output.ts';
import { drawMermaid, drawText } from '../pipeline/drawing.plan.ts';
import type { Run } from '../verb.ts';
import { pipelinePath } from './pipeline-change.ts';

export const list: Run = async (invocation) => {
  const client = await invocation.admin();
  return shownList(
    await client.list<Pipeline>('/pipelines'),
    [
      ['pipeline', ({ name }) => name],
      ['nodes', ({ nodes }) => nodes.length],
      ['generation', ({ generation }) => generation],
      ['now', ({ message }) => message],
    ],
    'No pipelines yet. Next: perch pipeline add FILE.yaml',
  );
};

export const show: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const pipeline = await client.call<Pipeline>(pipelinePath(name as string));
  if (options['mermaid']) return { value: drawMermaid(pipeline.spec), text: () => drawMermaid(pipeline.spec) };
  return { value: pipeline, text: () => pipelineText(pipeline, options['physical'] === true, Date.now()) };
};

export function pipelineText(pipeline: Pipeline, physical: boolean, now: number): string {
  const { name, spec, message, generation, updatedBy, updatedAt, nodes } = pipeline;
  const facts = factsText([
    ['pipeline', name],
    ['now', message],
    ['limits', `${spec.limits.timeoutMs} ms, bodies of ${spec.limits.maxBodyBytes} bytes`],
    ['access', spec.access.inference],
    ['description', spec.description || undefined],
    ['generation', `${generation} by ${updatedBy}, ${formatAge(updatedAt, now)}`],
  ]);
  return `${facts}\n\n${physical ? physicalText(nodes) : drawText(spec)}`;
}

/** A row a version that answers; a node without any has one row. */
function physicalText(nodes: readonly PipelineNodeSight[]): string {
  const rows = nodes.flatMap((node) => {
    const versions: (PipelineNodeSight['versions'][number] | undefined)[] = node.versions.length > 0 ? node.versions : [undefined]; // biome-ignore format: one row reads better
    return versions.map((version) => ({ node, version }));
  });
  return tableText(rows, [
    ['step', ({ node }) => node.step],
    ['node', ({ node }) => node.node],
    ['runs', ({ node }) => `${node.kind} ${node.name}`],
    ['version', ({ version }) => version?.version],
    ['traffic', ({ version }) => version && `${version.sharePercent} %`],
    ['where', ({ node, version }) => (node.kind === 'module' ? `routers, ${node.isolation}` : version?.servers)],
    ['instances', ({ node }) => (node.kind === 'endpoint' ? (node.instances ?? "the server's choice") : undefined)],
    ['missing', ({ node }) => node.missing],
  ]);
}

export const history: Run = async (invocation, [name]): Promise<Shown> => {
  const client = await invocation.admin();
  const generations = await client.list<PipelineGeneration>(`${pipelinePath(name as string)}/generations`);
  const now = Date.now();
  return shownList(
    generations,
    [
      ['generation', ({ generation }) => generation],
      ['when', ({ createdAt }) => formatAge(createdAt, now)],
      ['by', ({ actor }) => actor],
      ['reason', ({ reason }) => reason],
      ['nodes', ({ spec }) => (spec ? Object.entries(spec.nodes).map(([node, { endpoint, module }]) => `${node}=${endpoint ?? module}`) : 'removed')], // biome-ignore format: one row reads better
    ],
    `${name} has no generations.`,
  );
};
