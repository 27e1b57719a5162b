import { cpus, freemem, totalmem } from 'node:os';
import type { Metrics } from '@perch/platform';
import type { Duration } from '@perch/triton/control';
import type { ModelVersion } from './models/model-version.ts';
import { type FailureReason, failureReasons } from './models/version-statistics.ts';
import type { RepositoryService } from './repository/repository.service.ts';

type VersionLabels = { model: string; version: string };

/** Failed requests by model, version and reason; the series stay when the version is gone. */
export class FailureCounts {
  private readonly counts = new Map<string, { labels: VersionLabels; byReason: Record<FailureReason, number> }>();

  /** Makes the series of a version appear with zeros. */
  known(model: string, version: string): Record<FailureReason, number> {
    const key = `${model}\n${version}`;
    const found = this.counts.get(key);
    if (found) return found.byReason;
    const byReason = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
    this.counts.set(key, { labels: { model, version }, byReason });
    return byReason;
  }

  add(model: string, version: string, reason: FailureReason): void {
    this.known(model, version)[reason] += 1;
  }

  *series() {
    for (const { labels, byReason } of this.counts.values())
      for (const reason of failureReasons) yield { labels: { ...labels, reason }, value: byReason[reason] };
  }
}

const us = ({ ns }: Duration): number => Math.round(ns / 1_000);

const counters: [name: string, help: string, read: (version: ModelVersion) => number][] = [
  ['nv_inference_request_success', 'Number of successful inference requests, all batch sizes', (v) => v.statistics.success.count],
  ['nv_inference_count', 'Number of inferences performed', (v) => v.statistics.inferenceCount],
  ['nv_inference_exec_count', 'Number of model executions performed', (v) => v.statistics.executionCount],
  ['nv_inference_request_duration_us', 'Cumulative inference request duration in microseconds', (v) => us(v.statistics.success)],
  ['nv_inference_queue_duration_us', 'Cumulative inference queuing duration in microseconds', (v) => us(v.statistics.queue)],
  ['nv_inference_compute_input_duration_us', 'Cumulative compute input duration in microseconds', (v) => us(v.statistics.computeInput)],
  ['nv_inference_compute_infer_duration_us', 'Cumulative compute inference duration in microseconds', (v) => us(v.statistics.computeInfer)],
  ['nv_inference_compute_output_duration_us', 'Cumulative compute output duration in microseconds', (v) => us(v.statistics.computeOutput)],
]; // biome-ignore format: one row a metric

/** Share of all cores that was busy since the last call. */
function cpuShare(): () => number {
  let before = { busy: 0, all: 0 };
  return () => {
    const now = { busy: 0, all: 0 };
    for (const { times } of cpus()) {
      const all = times.user + times.nice + times.sys + times.idle + times.irq;
      now.all += all;
      now.busy += all - times.idle;
    }
    const share = now.all === before.all ? 0 : (now.busy - before.busy) / (now.all - before.all);
    before = now;
    return share;
  };
}

/** Triton's own metric names, read at each scrape; a version's series (failures excepted) go when it is unloaded. */
export function registerMetrics(metrics: Metrics, repository: RepositoryService, failures: FailureCounts): void {
  const versions = function* (read: (version: ModelVersion) => number) {
    for (const [model, version, runtime] of repository.ready())
      yield { labels: { model, version }, value: read(runtime) };
  };
  for (const [name, help, read] of counters)
    metrics.collected('counter', name, help, ['model', 'version'], () => versions(read));
  metrics.collected(
    'counter',
    'nv_inference_request_failure',
    'Number of failed inference requests, all batch sizes',
    ['model', 'version', 'reason'],
    () => {
      for (const [model, version] of repository.ready()) failures.known(model, version);
      return failures.series();
    },
  );
  metrics.collected(
    'gauge',
    'nv_inference_pending_request_count',
    'Instantaneous number of pending requests awaiting execution per-model.',
    ['model', 'version'],
    () => versions((runtime) => runtime.pendingCount),
  );
  const share = cpuShare();
  const machine: [string, string, () => number][] = [
    ['nv_cpu_utilization', 'CPU utilization rate [0.0 - 1.0]', share],
    ['nv_cpu_memory_total_bytes', 'CPU total memory (RAM), in bytes', totalmem],
    ['nv_cpu_memory_used_bytes', 'CPU used memory (RAM), in bytes', () => totalmem() - freemem()],
  ];
  for (const [name, help, read] of machine)
    metrics.collected('gauge', name, help, [], () => [{ labels: {}, value: read() }]);
}
