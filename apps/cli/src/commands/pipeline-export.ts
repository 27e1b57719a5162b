import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  AppError,
  type DownloadUrl,
  type Endpoint,
  type EndpointExport,
  type Pipeline,
  type PipelineNodeSight,
} from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { downloadFiles } from '../download.apply.ts';
import { formatBytes } from '../duration.ts';
import { containerText } from '../export.plan.ts';
import { said } from '../output.ts';
import { type EnsemblePlan, type NodeModel, planEnsemble } from '../pipeline/ensemble.plan.ts';
import { type ExportedEndpoint, endpointDocuments, exportReadme, mergeModels } from '../pipeline/export.plan.ts';
import type { Run } from '../verb.ts';
import { requireName, requireRoom } from './endpoint-export.ts';
import { pipelinePath } from './pipeline-change.ts';
import { endpointPath } from './ready.ts';

/** `perch pipeline export NAME DIR`: the models of all its nodes in one repository, its modules, its specification. */
export const run: Run = async (invocation, [name, place], options) => {
  const client = await invocation.admin();
  const folder = resolve(place as string);
  await requireRoom(folder, options['force'] === true);
  const pipeline = await client.call<Pipeline>(pipelinePath(name as string));
  const byNode = await endpointsOf(client, pipeline);
  const endpoints = [...new Map([...byNode.values()].map((one) => [one.spec.name, one])).values()];
  const models = mergeModels(endpoints);
  for (const model of models) requireName(model.name);
  const modules = [...new Set(pipeline.nodes.filter(({ kind }) => kind === 'module').map((node) => node.name))];
  const files = [
    ...models.flatMap((model) => model.files.map((file) => ({ ...file, path: `models/${model.name}/${file.path}` }))),
    ...endpoints.flatMap(({ spec, exported }) => exported.processing.files.map((file) => ({ ...file, path: `processing/${spec.name}/${file.path}` }))), // biome-ignore format: one row reads better
    ...(await moduleFiles(client, modules)),
  ];
  const total = await downloadFiles(client, files, folder, invocation.output === 'table');
  const ensemble = { name: slugOf(pipeline.name), ...(await ensembleOf(client, pipeline, byNode)) };
  const configs = [...models, ...('text' in ensemble ? [{ name: ensemble.name, version: 1, config: ensemble.text }] : [])]; // biome-ignore format: one row reads better
  for (const model of configs) {
    await mkdir(join(folder, 'models', model.name, String(model.version)), { recursive: true });
    if (model.config !== null) await writeFile(join(folder, 'models', model.name, 'config.pbtxt'), model.config);
  }
  const { stringify } = await import('yaml');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'pipeline.yaml'), stringify(pipeline.spec));
  await writeFile(join(folder, 'endpoints.yaml'), endpointDocuments(endpoints).map((one) => stringify(one)).join('---\n')); // biome-ignore format: one row reads better
  await writeFile(join(folder, 'Containerfile'), containerText);
  await writeFile(join(folder, 'README.md'), exportReadme(pipeline.spec, endpoints, modules, ensemble));
  const whole = 'text' in ensemble ? `a Triton alone serves it as the ensemble ${ensemble.name}` : `a Triton alone serves its models, not the pipeline: ${ensemble.why}`; // biome-ignore format: one row reads better
  return said(
    { pipeline: pipeline.name, folder, models: configs.map((model) => model.name), modules, sizeBytes: total, ensemble: 'text' in ensemble ? ensemble.name : null }, // biome-ignore format: one row reads better
    `Pipeline ${pipeline.name} is in ${folder}: ${models.length} model folder${models.length === 1 ? '' : 's'}, ${modules.length} module${modules.length === 1 ? '' : 's'}, ${formatBytes(total)}; ${whole}. README.md says how to serve it.`,
  );
};

/** Refused by name: what is no endpoint with models of its own. */
async function endpointsOf(
  client: AdminClient,
  { name, nodes, spec }: Pipeline,
): Promise<Map<string, ExportedEndpoint>> {
  const found = new Map<string, ExportedEndpoint>();
  for (const node of nodes) {
    if (node.kind === 'module') continue;
    if (node.kind !== 'endpoint')
      throw new AppError('invalid', `pipeline ${name}: node ${node.node} asks ${node.kind} ${node.name}: an export is of models, so name an endpoint there`); // biome-ignore format: one row reads better
    found.set(node.node, await exportOf(client, node, spec.nodes[node.node]!.version));
  }
  return found;
}

async function exportOf(client: AdminClient, { name }: PipelineNodeSight, version: number | undefined) {
  const { spec } = await client.call<Endpoint>(endpointPath(name));
  const query = version === undefined ? {} : { version };
  return { spec, exported: await client.call<EndpointExport>(`${endpointPath(name)}/export`, { query }) };
}

async function moduleFiles(client: AdminClient, modules: readonly string[]): Promise<DownloadUrl[]> {
  const lists = modules.map(async (reference) => {
    const [name, number] = reference.split('@');
    const files = await client.list<DownloadUrl>(`/modules/${encodeURIComponent(name!)}/${number}/files`);
    return files.map((file) => ({ ...file, path: `modules/${reference}/${file.path}` }));
  });
  return (await Promise.all(lists)).flat();
}

const slugOf = (name: string) => name.toLowerCase().replace(/[^a-z0-9_-]+/g, '-');

interface ServedConfig {
  max_batch_size?: number;
  input?: NodeModel['inputs'];
  output?: NodeModel['outputs'];
}

async function ensembleOf(
  client: AdminClient,
  { name, spec }: Pipeline,
  endpoints: ReadonlyMap<string, ExportedEndpoint>,
): Promise<EnsemblePlan> {
  const models = new Map<string, NodeModel>();
  for (const [node, { exported }] of endpoints) {
    const path = `/v2/models/${encodeURIComponent(exported.endpoint)}/versions/${exported.version}/config`;
    const answer = await client.readServing(path, 10_000);
    if (answer.status !== 200)
      return { why: `the router could not be asked about the tensors of node ${node} (it answered ${answer.status})` };
    const config = JSON.parse(answer.body.toString('utf8')) as ServedConfig;
    const { builtin = 'passthrough', module } = exported.processing;
    models.set(node, {
      name: exported.models.find(({ served }) => served)!.name,
      maxBatchSize: config.max_batch_size ?? 0,
      inputs: config.input ?? [],
      outputs: config.output ?? [],
      processing: module ?? (builtin === 'passthrough' ? null : builtin),
    });
  }
  return planEnsemble(slugOf(name), spec, models);
}
