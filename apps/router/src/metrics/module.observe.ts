import type { ModuleHost, PoolStats } from '@perch/processing/host';
import { labelText, type MetricFamily } from './snapshot.ts';

type Samples = MetricFamily['samples'];

const counts: [name: string, help: string, read: (stats: PoolStats) => number][] = [
  ['perch_module_calls_total', 'Hooks that were run in workers and processes of modules.', (stats) => stats.calls],
  ['perch_module_starts_total', 'Workers and processes started.', (stats) => stats.starts],
  ['perch_module_ends_total', 'Workers and processes that ended before their time.', (stats) => stats.ends],
  ['perch_module_again_total', 'Hooks run again, since their worker or process had ended.', (stats) => stats.again],
  ['perch_module_refused_total', 'Refusals, since workers or processes ended again and again.', (stats) => stats.refused],
]; // biome-ignore format: one row a family

const gauges = [
  ['perch_module_cells', 'Workers and processes that run modules.', 'cells'],
  ['perch_module_queued', 'Hooks asked for and not answered yet.', 'queued'],
  ['perch_module_off_heap_bytes', 'Buffers outside of the heap that they hold, as last told.', 'offHeapBytes'],
] as const;

/** Figures of registered modules that run outside of the router's own thread, by module and where it runs. */
export function observeModules({ counts: all, running }: ModuleHost): MetricFamily[] {
  const series = (name: string, { label, kind }: { label: string; kind: string }) =>
    `${name}{${labelText({ module: label, isolation: kind })}}`;
  const families = counts.map(([name, help, read]): MetricFamily => {
    const samples: Samples = [...all.values()].map((stats) => [series(name, stats), read(stats)]);
    return { name, help, type: 'counter', merge: 'sum', samples };
  });
  const now = gauges.map(([name, help, field]): MetricFamily => {
    const samples: Samples = running.map((pool) => [series(name, pool.stats), pool.figures()[field]]);
    return { name, help, type: 'gauge', merge: 'sum', samples };
  });
  return [...families, ...now];
}
