import { Injectable } from '@nestjs/common';
import { AppError, type RolloutSimulation, type SimulateRollout } from '@perch/contracts';
import { TrafficService } from '@perch/endpoints';
import { Transactions } from '@perch/platform/database';
import { BaselineService } from './evidence/baseline.service.ts';
import { forecastPolicy, measuredVersion, planForecast } from './forecast.plan.ts';
import { simulateAside } from './simulation.source.ts';

/** What a policy would do at an endpoint's rates, before anything starts. */
@Injectable()
export class SimulationService {
  private running = false;

  constructor(
    private readonly transactions: Transactions,
    private readonly traffic: TrafficService,
    private readonly baselines: BaselineService,
  ) {}

  /**
   * What the wish leaves out is measured over the last day. One simulation runs at a time in a process. Throws `not_found`, `invalid` (nothing was measured and nothing given), `unavailable`.
   */
  async simulate(endpoint: string, wish: SimulateRollout): Promise<RolloutSimulation> {
    const forecast = await this.transactions.run(async (tx) => {
      const sight = await this.traffic.look(tx, endpoint);
      if (!sight.exists) throw new AppError('not_found', `endpoint ${endpoint} does not exist`);
      const policy = forecastPolicy(wish, sight);
      const version = measuredVersion(sight);
      const sloLatencyMs = sight.spec?.slo?.latencyMs;
      const measured =
        version === null ? null : await this.baselines.measure(tx, { endpoint, version, policy, sloLatencyMs });
      return planForecast(endpoint, wish, policy, measured);
    });
    if (this.running)
      throw new AppError('unavailable', 'another simulation runs here; try again in a while', { retryAfterMs: 5_000 });
    this.running = true;
    try {
      return await simulateAside(forecast);
    } finally {
      this.running = false;
    }
  }
}
