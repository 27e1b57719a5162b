export { Coalescing } from './coalesce.ts';
export {
  booleanSetting,
  commonSettings,
  type Environment,
  type ListenAddress,
  listenAddress,
  readConfig,
  tlsSettings,
} from './env.config.ts';
export { Health, type HealthCheck, type HealthReport } from './health.ts';
export { createHttpProgram, type HttpProgram, listenHttp } from './http.ts';
export { createLogger, LOGGER, type LogFields, type Logger, nestLogger, silentLogger } from './logger.ts';
export { type CounterMetric, durationBuckets, type GaugeMetric, type HistogramMetric, Metrics } from './metrics.ts';
export { runProgram, type Stoppable } from './program.ts';
export { addressReach, checkReach, type Reach } from './reach.decide.ts';
export { checkedLookup, checkHost } from './reach.ts';
export { backoffMs, pause, withTimeout } from './timing.ts';
