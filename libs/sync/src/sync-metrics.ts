import type { CounterMetric, GaugeMetric, HistogramMetric, Metrics } from '@perch/platform';

/** What an agent tells about its work. */
export interface SyncMetrics {
  pullBytes: CounterMetric<never>;
  pullSeconds: HistogramMetric<never>;
  actions: CounterMetric<'action' | 'outcome'>;
  actionSeconds: HistogramMetric<'action'>;
  loads: CounterMetric<'outcome'>;
  passes: CounterMetric<'outcome'>;
  models: GaugeMetric<'state'>;
  desiredRevision: GaugeMetric<never>;
  observedRevision: GaugeMetric<never>;
  cacheBytes: GaugeMetric<never>;
  tritonCalls: CounterMetric<'call' | 'outcome'>;
}

export const createSyncMetrics = (metrics: Metrics): SyncMetrics => ({
  pullBytes: metrics.counter('perch_agent_pull_bytes_total', 'Bytes pulled from the artifact store', []),
  pullSeconds: metrics.histogram('perch_agent_pull_seconds', 'Time to pull, verify and sync one blob', []),
  actions: metrics.counter('perch_agent_actions_total', 'Steps done on models', ['action', 'outcome']),
  actionSeconds: metrics.histogram('perch_agent_action_seconds', 'Time of a step on a model', ['action']),
  loads: metrics.counter('perch_agent_loads_total', 'Loads asked of Triton', ['outcome']),
  passes: metrics.counter('perch_agent_passes_total', 'Comparisons of desired and observed', ['outcome']),
  models: metrics.gauge('perch_agent_models', 'Models by state', ['state']),
  desiredRevision: metrics.gauge('perch_agent_desired_revision', 'Revision of the newest document', []),
  observedRevision: metrics.gauge('perch_agent_observed_revision', 'Newest revision that was fully reached', []),
  cacheBytes: metrics.gauge('perch_agent_cache_bytes', 'Bytes of blobs in the cache', []),
  tritonCalls: metrics.counter('perch_agent_triton_calls_total', 'Control calls to Triton', ['call', 'outcome']),
});
