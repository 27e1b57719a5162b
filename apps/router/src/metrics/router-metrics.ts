import { Metrics } from '@perch/platform';
import { type MetricFamily, mergeSnapshots, renderSnapshot } from './snapshot.ts';

/** Snapshots of every process that serves, this one's included. */
export type CollectSnapshots = () => Promise<MetricFamily[][]> | MetricFamily[][];

/** /metrics: this process's own figures by the metrics library, and those of the request path added up over all workers. */
export class RouterMetrics extends Metrics {
  private collect: CollectSnapshots = () => [];

  constructor() {
    super({ processMetrics: true });
  }

  from(collect: CollectSnapshots): void {
    this.collect = collect;
  }

  override async render(): Promise<{ contentType: string; body: string }> {
    const { contentType, body } = await super.render();
    return { contentType, body: body + renderSnapshot(mergeSnapshots(await this.collect())) };
  }
}
