import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface CounterMetric<L extends string> {
  add(labels: Record<L, string>, by?: number): void;
}
export interface GaugeMetric<L extends string> {
  set(labels: Record<L, string>, value: number): void;
  remove(labels: Record<L, string>): void;
}
export interface HistogramMetric<L extends string> {
  observe(labels: Record<L, string>, value: number): void;
}

/** Seconds, from 0.5 ms to 60 s. */
export const durationBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The metrics of one program; names are `perch_…` with the unit in the name. */
export class Metrics {
  private readonly registry = new Registry();

  constructor(options: { processMetrics?: boolean } = {}) {
    if (options.processMetrics) collectDefaultMetrics({ register: this.registry });
  }

  counter<L extends string>(name: string, help: string, labelNames: readonly L[]): CounterMetric<L> {
    const metric = new Counter({ name, help, labelNames: [...labelNames], registers: [this.registry] });
    return { add: (labels, by = 1) => metric.inc(labels, by) };
  }

  gauge<L extends string>(name: string, help: string, labelNames: readonly L[]): GaugeMetric<L> {
    const metric = new Gauge({ name, help, labelNames: [...labelNames], registers: [this.registry] });
    return { set: (labels, value) => metric.set(labels, value), remove: (labels) => metric.remove(labels) };
  }

  histogram<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets = durationBuckets,
  ): HistogramMetric<L> {
    const metric = new Histogram({ name, help, labelNames: [...labelNames], buckets, registers: [this.registry] });
    return { observe: (labels, value) => metric.observe(labels, value) };
  }

  /** Values that are cheaper to count by hand on a hot path are read here, at each scrape. */
  collected<L extends string>(
    kind: 'counter' | 'gauge',
    name: string,
    help: string,
    labelNames: readonly L[],
    read: () => Iterable<{ labels: Record<L, string>; value: number }>,
  ): void {
    const options = { name, help, labelNames: [...labelNames], registers: [this.registry] };
    if (kind === 'gauge') {
      new Gauge({
        ...options,
        collect() {
          this.reset();
          for (const { labels, value } of read()) this.set(labels, value);
        },
      });
      return;
    }
    new Counter({
      ...options,
      collect() {
        this.reset();
        for (const { labels, value } of read()) this.inc(labels, value);
      },
    });
  }

  /** Prometheus text format and its content type. */
  async render(): Promise<{ contentType: string; body: string }> {
    return { contentType: this.registry.contentType, body: await this.registry.metrics() };
  }
}
