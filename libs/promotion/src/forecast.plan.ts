import { AppError, policyOf, type RolloutPolicy, type SimulateRollout } from '@perch/contracts';
import type { TrafficSight } from '@perch/endpoints';
import type { MeasuredBaseline } from './evidence/evidence.entity.ts';
import type { RolloutForecast } from './statistics/simulate-rollout.ts';

/** Taken where stable answered too few requests to say. */
const assumedErrorRate = 0.001;
const percent = (rate: number) => `${Number((rate * 100).toPrecision(2))} %`;

/** The version whose day is measured: what has the traffic, else the newest that is ready; null: nothing serves. */
export function measuredVersion({ force, deployments }: Pick<TrafficSight, 'force' | 'deployments'>): number | null {
  const stable = deployments.find(({ digest }) => digest === force.stable);
  const ready = deployments.filter(({ state }) => state === 'ready').map(({ version }) => version);
  return stable?.version ?? (ready.length > 0 ? Math.max(...ready) : null);
}

export const forecastPolicy = (wish: SimulateRollout, { spec }: Pick<TrafficSight, 'spec'>): RolloutPolicy =>
  policyOf(wish.policy ?? spec?.traffic.policy);

/**
 * What to simulate: figures of the wish go before measured ones. `measured` null: nothing serves. Throws `invalid` where
 * neither says how many requests there are.
 */
export function planForecast(
  endpoint: string,
  wish: SimulateRollout,
  policy: RolloutPolicy,
  measured: MeasuredBaseline | null,
): RolloutForecast {
  const { runs, seed } = wish;
  const requestsPerMinute = wish.requestsPerMinute ?? measured?.requestsPerMinute ?? 0;
  if (requestsPerMinute <= 0)
    throw new AppError(
      'invalid',
      `requestsPerMinute: endpoint ${endpoint} had no requests in the last day, so nothing can be measured; say how many it will get`,
    );
  const errorRate = wish.errorRate ?? measured?.errorRate ?? assumedErrorRate;
  const traffic =
    wish.requestsPerMinute !== undefined
      ? 'Requests as given'
      : "Requests as in the busiest minute of the endpoint's last day";
  const errors =
    wish.errorRate !== undefined
      ? 'errors as given'
      : measured?.errorRate != null
        ? `errors as stable made them in the last day (${percent(errorRate)} of ${measured.requests} requests)`
        : `errors assumed at ${percent(errorRate)}, because stable answered too few requests in the last day to say`;
  return { policy, requestsPerMinute, errorRate, source: `${traffic}; ${errors}.`, runs, seed };
}
