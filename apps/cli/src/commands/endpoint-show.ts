import type { Deployment, Endpoint, Split } from '@perch/contracts';
import { formatAge, formatBytes } from '../duration.ts';
import { factsText, tableText } from '../output.ts';
import { processingText } from '../spec/processing-text.plan.ts';
import type { Run } from '../verb.ts';
import { endpointPath } from './ready.ts';
import { splitPath } from './split-change.ts';
import { sharesText } from './split-show.ts';

export const run: Run = async (invocation, [name]) => {
  const client = await invocation.admin();
  const endpoint = await client.call<Endpoint>(endpointPath(name as string));
  const split = await client.find<Split>(splitPath(name as string));
  return { value: endpoint, text: () => endpointText(endpoint, Date.now(), split) };
};

/** `split`: the one of its own name, which sets its weights. */
export function endpointText(endpoint: Endpoint, now: number, split?: Split): string {
  const { spec, status } = endpoint;
  const facts = factsText([
    ['endpoint', endpoint.name],
    ['phase', `${status.phase} (${status.reason})`],
    ['message', status.message],
    ['serving', status.servingVersions],
    ['next version', status.nextVersion ?? undefined],
    ['follows', followsText(spec.model)],
    ['processing', spec.processing ? processingText(spec.processing) : 'what the version carries, else passthrough'],
    ['traffic', split ? `by the split of this name: ${sharesText(split.spec)}` : trafficText(spec.traffic)],
    ['updates', endpoint.updatesHeldBy && `held by ${endpoint.updatesHeldBy}`],
    ['access', spec.access.inference],
    ['pool', `${spec.fleet.pool}, ${spec.fleet.replicas} replicas`],
    ['generation', `${endpoint.generation} by ${endpoint.updatedBy}, ${formatAge(endpoint.updatedAt, now)}`],
  ]);
  if (endpoint.deployments.length === 0) return facts;
  return `${facts}\n\n${deploymentsText(endpoint.deployments, now)}`;
}

function followsText(model: Endpoint['spec']['model']): string {
  if (model.none) return 'no model: its module does all the work';
  const name = `${model.project}/${model.name}`;
  if (model.version !== undefined) return `${name}, version ${model.version} alone`;
  const { tags = [], tagMatch = 'all', published = true } = model.select ?? {};
  const kind = published ? 'published versions' : 'versions, drafts too';
  const tagged = tags.length > 0 ? ` with ${tagMatch} of the tags ${tags.join(', ')}` : '';
  return `${name}: the newest ${model.maxVersions ?? 1} ${kind}${tagged}`;
}

const trafficText = ({ mode, weights, newestFirst, policy, sticky }: Endpoint['spec']['traffic']) =>
  [
    mode,
    ...(weights || newestFirst ? [JSON.stringify(weights ?? newestFirst)] : []),
    ...(policy === undefined ? [] : [`policy ${typeof policy === 'string' ? policy : 'of its own'}`]),
    ...(sticky ? [`sticky by ${sticky.header}`] : []),
  ].join(', ');

const deploymentsText = (deployments: readonly Deployment[], now: number) => {
  const sorted = [...deployments].sort((a, b) => b.version - a.version);
  const versions = tableText(sorted, [
    ['version', ({ version }) => version],
    ['state', ({ state }) => state],
    ['traffic', ({ weightPercent, role }) => `${Math.round(weightPercent * 100) / 100} %${role ? ` (${role})` : ''}`],
    ['since', ({ since }) => formatAge(since, now)],
    ['processing', ({ processing }) => processing && processingText(processing)],
    ['triton model', ({ tritonModel, modelless }) => (modelless ? '(no model)' : tritonModel)],
    ['reason', ({ reason }) => reason],
  ]);
  const held = sorted.flatMap((deployment) => deployment.servers.map((server) => ({ deployment, server })));
  return held.length === 0 ? versions : `${versions}\n\n${serversText(held, now)}`;
};

type Held = { deployment: Deployment; server: Deployment['servers'][number] };

const serversText = (held: readonly Held[], now: number) =>
  tableText(held, [
    ['version', ({ deployment }) => deployment.version],
    ['server', ({ server }) => server.server],
    ['wanted', ({ server }) => server.wanted],
    ['state', ({ server }) => server.state],
    ['since', ({ server }) => (server.since ? formatAge(server.since, now) : undefined)],
    ['memory', ({ server }) => (server.memoryBytes ? formatBytes(server.memoryBytes) : undefined)],
    ['waits for', ({ server }) => server.waitsFor],
    ['reason', ({ server }) => server.reason],
    ['failed before', ({ server }) => server.earlier?.map(({ tritonModel, reason }) => `${tritonModel}: ${reason}`)],
    [
      'triton model',
      ({ deployment, server }) => (server.tritonModel === deployment.tritonModel ? undefined : server.tritonModel),
    ],
  ]);
