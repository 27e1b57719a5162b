import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Metrics, pause } from '@perch/platform';
import { CensusSource, type WholeCensus } from './census.source.ts';

const everyMs = 15_000;

const rowsOf = <L extends string>(label: L, counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).map(([word, value]) => ({ labels: { [label]: word } as Record<L, string>, value }));

/** How many deployments, endpoints and rollouts are in which state, and how much work waits: counted every few seconds, shown at a scrape. */
@Injectable()
export class CensusLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopped = new AbortController();
  private census: WholeCensus = { deployments: {}, endpoints: {}, rollouts: [], depths: {} };
  private running: Promise<void> | undefined;

  constructor(
    private readonly source: CensusSource,
    metrics: Metrics,
  ) {
    metrics.collected('gauge', 'perch_deployments', 'Deployments that are not retired, by state.', ['state'], () =>
      rowsOf('state', this.census.deployments),
    );
    metrics.collected('gauge', 'perch_endpoints', 'Endpoints, by phase.', ['phase'], () =>
      rowsOf('phase', this.census.endpoints),
    );
    metrics.collected('gauge', 'perch_rollouts', 'Rollouts that go on, by state and run.', ['state', 'run'], () =>
      this.census.rollouts.map(({ state, run, count }) => ({ labels: { state, run }, value: count })),
    );
    metrics.collected('gauge', 'perch_work_depth', 'Keys that are due or worked on, by loop.', ['loop'], () =>
      rowsOf('loop', this.census.depths),
    );
  }

  onApplicationBootstrap(): void {
    this.running = this.run();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      await this.look().catch(() => undefined); // the database is away: the figures stay as they were
      await pause(everyMs, this.stopped.signal);
    }
  }

  private async look(): Promise<void> {
    this.census = await this.source.read();
  }
}
