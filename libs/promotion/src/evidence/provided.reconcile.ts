import { Inject, Injectable } from '@nestjs/common';
import { errorCodeOf, type ProvidedMetric, shownMessage } from '@perch/contracts';
import { rolloutWork } from '@perch/endpoints';
import { LOGGER, type Logger } from '@perch/platform';
import { Transactions, WorkStore } from '@perch/platform/database';
import { PrometheusClient } from './prometheus.client.ts';
import { addReading, fillQuery, nothingRead, type ProvidedReading } from './provided.decide.ts';
import { type ProvidedRollout, ProvidedStore } from './provided.store.ts';

/** Reads the metrics that users' Prometheus servers provide for rollouts. */
@Injectable()
export class ProvidedReconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: ProvidedStore,
    private readonly prometheus: PrometheusClient,
    private readonly work: WorkStore,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Endpoints to be read. */
  endpoints(): Promise<string[]> {
    return this.store.endpoints(this.transactions.manager);
  }

  /** One metric that fails holds up no other. */
  async read(endpoint: string): Promise<void> {
    const rollout = await this.store.rollout(this.transactions.manager, endpoint);
    if (!rollout) return;
    await Promise.all(rollout.provided.map((metric) => this.readMetric(rollout, metric)));
    await this.work.enqueue(null, rolloutWork, endpoint);
  }

  private async readMetric(rollout: ProvidedRollout, metric: ProvidedMetric): Promise<void> {
    const tx = this.transactions.manager;
    let reading: ProvidedReading;
    try {
      reading = await this.ask(rollout, metric);
    } catch (error) {
      const { endpoint, id } = rollout;
      this.logger.warn('provided metric not read', { endpoint, rollout: id, metric: metric.name, error: errorCodeOf(error) }); // biome-ignore format: one line
      await this.store.saveFault(tx, id, metric.name, nothingRead, shownMessage(error));
      return;
    }
    const body = addReading(rollout.bodies[metric.name] ?? nothingRead, reading, rollout.epoch, rollout.nowMs);
    await this.store.save(tx, rollout.id, metric.name, body);
  }

  private async ask({ endpoint, versions }: ProvidedRollout, metric: ProvidedMetric): Promise<ProvidedReading> {
    const arm = async (name: 'stable' | 'candidate') => {
      const names = { endpoint, version: versions[name], arm: name };
      const [events, totals] = await Promise.all([
        this.prometheus.figure(metric.url, fillQuery(metric.events, names)),
        this.prometheus.figure(metric.url, fillQuery(metric.totals, names)),
      ]);
      return { events, totals };
    };
    const [stable, candidate] = await Promise.all([arm('stable'), arm('candidate')]);
    return { stable, candidate, versions };
  }
}
