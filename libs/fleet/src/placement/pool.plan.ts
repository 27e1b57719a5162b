import type { Pool } from '@perch/contracts';
import { roomOf } from './memory.plan.ts';
import type { PlannedServer } from './placement-world.ts';

/** What placement may still give away on these servers; those out of service, or without a word, give nothing. */
export function roomView(servers: readonly PlannedServer[]): Pick<Pool, 'ram' | 'gpu'> {
  const ofKind = (total: (server: PlannedServer) => number, free: (server: PlannedServer) => number | null) => {
    const known = servers.filter((server) => total(server) > 0);
    if (known.length === 0) return null;
    const open = known.filter(({ drain, presence }) => drain === null && presence === 'live');
    return { totalBytes: sum(known.map(total)), freeBytes: sum(open.map((server) => Math.max(0, free(server) ?? 0))) };
  };
  return {
    ram: ofKind(
      ({ facts }) => facts?.ramBytes ?? 0,
      (server) => roomOf(server).ramBytes,
    ),
    gpu: ofKind(
      ({ facts }) => sum((facts?.gpus ?? []).map(({ totalBytes }) => totalBytes)),
      (server) => roomOf(server).gpuBytes,
    ),
  };
}

function sharedLabels([first, ...others]: readonly PlannedServer[]): Record<string, string> {
  const shared = Object.entries(first?.labels ?? {}).filter(([name, value]) =>
    others.every(({ labels }) => labels[name] === value),
  );
  return Object.fromEntries(shared);
}

export function describePool(name: string, servers: readonly PlannedServer[], endpoints: number): Pool {
  return {
    name,
    labels: sharedLabels(servers),
    servers: servers.length,
    live: servers.filter(({ presence }) => presence === 'live').length,
    draining: servers.filter(({ drain }) => drain !== null).length,
    models: sum(servers.map(({ models }) => models)),
    endpoints,
    ...roomView(servers),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
