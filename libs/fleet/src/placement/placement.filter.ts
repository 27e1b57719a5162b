import { compatibilityFault } from './compatibility.filter.ts';
import { addedMemory, roomOf } from './memory.plan.ts';
import type { ModelFacts, PlannedDeployment, PlannedServer } from './placement-world.ts';
import { type ModelVariant, neededName } from './variant.ts';

/** The first variant that a server can take, or why it can take none. */
export type Fit = { variant: ModelVariant } | { fault: string };

/** Why a server gets nothing new, whatever it is. */
export function serverFault({ presence, drain, external, reported }: PlannedServer): string | undefined {
  if (external) return 'has no agent';
  if (drain !== null) return 'is being drained';
  if (presence !== 'live') return 'does not report';
  return reported ? undefined : 'has not reported yet';
}

/** What of a deployment's labels a server lacks, in a few words. */
export function labelFault({ labels }: PlannedDeployment, { labels: has }: PlannedServer): string | undefined {
  const missing = Object.entries(labels ?? {}).filter(([name, value]) => has[name] !== value);
  if (missing.length === 0) return undefined;
  const words = missing.map(([name, value]) =>
    has[name] === undefined ? `has no label ${name}=${value}` : `is ${name}=${has[name]}, not ${name}=${value}`,
  );
  return words.join(' and ');
}

export function fitOn(deployment: PlannedDeployment, server: PlannedServer, facts: ModelFacts): Fit {
  const closed = serverFault(server) ?? labelFault(deployment, server);
  if (closed) return { fault: closed };
  const faults: string[] = [];
  for (const variant of deployment.variants) {
    const fault = variantFault(deployment, variant, server, facts);
    if (fault === undefined) return { variant };
    const { platform } = variant.model.engine;
    faults.push(deployment.variants.length > 1 && platform ? `${platform} ${fault}` : fault);
  }
  return { fault: [...new Set(faults)].join(', ') || 'nothing to run' };
}

/** Why this variant cannot run on this server now, in a few words. */
function variantFault(
  { endpoint }: PlannedDeployment,
  variant: ModelVariant,
  server: PlannedServer,
  facts: ModelFacts,
): string | undefined {
  const failure = facts.failures.get(`${server.id} ${variant.tritonModel}`);
  if (failure !== undefined) return `failed there: ${failure}`;
  return (
    inlineFault(variant, server) ??
    compatibilityFault(variant, server.facts) ??
    nameFault(endpoint, variant, server, facts) ??
    memoryFault(variant, server, facts)
  );
}

/** A server without an agent is handed each model with the request to load it. */
function inlineFault({ model, needs }: ModelVariant, { inlineBytes }: PlannedServer): string | undefined {
  if (inlineBytes === null || inlineBytes === undefined) return undefined;
  if (needs.length > 0) return 'has no agent, and takes no models that need others';
  const size = model.files.reduce((sum, file) => sum + file.size, 0);
  if (size <= inlineBytes) return undefined;
  return `has no agent, and takes models up to ${sizeText(inlineBytes)} (this one has ${sizeText(size)})`;
}

/**
 * A literal name stands for one model on a server. Successive models of one endpoint, or of one used model, follow each
 * other under it; anything else is a conflict.
 */
function nameFault(
  endpoint: string,
  { needs }: ModelVariant,
  server: PlannedServer,
  { taken }: ModelFacts,
): string | undefined {
  for (const needed of needs.filter(({ as }) => as !== null)) {
    const other = taken.find(
      (one) =>
        one.server === server.id &&
        one.name === neededName(needed) &&
        one.tritonModel !== needed.tritonModel &&
        one.endpoint !== endpoint &&
        (one.usedModel === null || one.usedModel !== needed.of),
    );
    if (other) return `holds ${other.usedModel ?? other.tritonModel} as ${other.name} for endpoint ${other.endpoint}`;
  }
  return undefined;
}

function memoryFault(variant: ModelVariant, server: PlannedServer, facts: ModelFacts): string | undefined {
  const wants = addedMemory(variant, server, facts);
  const room = roomOf(server);
  if (room.gpuBytes !== null && wants.gpuBytes > room.gpuBytes) return shortage(wants.gpuBytes, room.gpuBytes, ' of GPU memory'); // biome-ignore format: one row reads better
  if (room.ramBytes !== null && wants.ramBytes > room.ramBytes) return shortage(wants.ramBytes, room.ramBytes, '');
  return undefined;
}

const shortage = (wants: number, free: number, kind: string) =>
  `wants ${sizeText(wants)}${kind}, ${sizeText(Math.max(0, free))} free`;

/** `3.1 GiB`, `512 MiB` */
export function sizeText(bytes: number): string {
  const mebibytes = bytes / 1_048_576;
  if (mebibytes >= 1_024) return `${(mebibytes / 1_024).toFixed(1)} GiB`;
  return `${mebibytes >= 10 || mebibytes === 0 ? Math.round(mebibytes) : mebibytes.toFixed(1)} MiB`;
}

const namedServers = 4;

/** `gpu-2: wants 3.1 GiB, 1.2 GiB free; cpu-1, cpu-2: has no GPU; and 3 more` */
export function faultsText(faults: readonly { server: string; fault: string }[]): string {
  const byFault = new Map<string, string[]>();
  for (const { server, fault } of [...faults].sort((a, b) => (a.server < b.server ? -1 : 1)))
    byFault.set(fault, [...(byFault.get(fault) ?? []), server]);
  const groups = [...byFault].map(([fault, servers]) => {
    const more = servers.length > namedServers ? ` and ${servers.length - namedServers} more` : '';
    return `${servers.slice(0, namedServers).join(', ')}${more}: ${fault}`;
  });
  return [...groups.slice(0, namedServers), ...(groups.length > namedServers ? [`and ${groups.length - namedServers} more reasons`] : [])].join('; '); // biome-ignore format: one row reads better
}
