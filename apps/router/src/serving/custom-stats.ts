import type { EndpointMetric } from '@perch/contracts';
import type { ArmStats } from './request-stats.ts';

export type CustomKind = 'observed' | 'counted' | 'flagged';

interface SeriesHead {
  name: string;
  arm: ArmStats['labels'];
}

/** Of a name that the endpoint's metrics do not speak of. */
export interface CustomSeries extends SeriesHead {
  kind: CustomKind;
  sum: number;
  count: number;
}

/** Kind `scalar`: how many values fell below each bound, and beyond the last one. */
export interface ScalarSeries extends SeriesHead {
  bounds: readonly number[];
  counts: number[];
  sum: number;
}

/** Kind `enum`: how often each value was given; any other value counts as `other`. */
export interface EnumSeries extends SeriesHead {
  counts: Map<string, number>;
}

/** Kind `value`: the last one. */
export interface ValueSeries extends SeriesHead {
  last: number;
}

const maxSeries = 2_000;
const properName = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** What processing modules measure by `ctx.observe`, `ctx.count` and `ctx.flag`; a bounded number of series. */
export class CustomStats {
  readonly series = new Map<string, CustomSeries>();
  readonly scalars = new Map<string, ScalarSeries>();
  readonly enums = new Map<string, EnumSeries>();
  readonly values = new Map<string, ValueSeries>();

  /** `metric`: what the endpoint says of this name; undefined: nothing. A value that is none of its kind is dropped. */
  observe(stats: ArmStats, name: string, value: number | string, metric: EndpointMetric | undefined): void {
    if (metric?.type === 'enum') this.countValue(stats, name, String(value), metric.values);
    else if (typeof value !== 'number' || !Number.isFinite(value)) return;
    else if (metric?.type === 'scalar') this.countScalar(stats, name, value, metric.buckets);
    else if (metric?.type === 'value') this.keep(stats, name, value);
    else this.add('observed', stats, name, value);
  }
  count(stats: ArmStats, name: string, by: number): void {
    this.add('counted', stats, name, by);
  }
  flag(stats: ArmStats, name: string): void {
    this.add('flagged', stats, name, 1);
  }

  private add(kind: CustomKind, stats: ArmStats, name: string, value: number): void {
    if (!Number.isFinite(value) || !properName.test(name)) return;
    const series = this.ensure(this.series, stats, `${kind} ${name}`, (arm) => ({ kind, name, arm, sum: 0, count: 0 }));
    if (!series) return;
    series.sum += value;
    series.count += 1;
  }

  private countScalar(stats: ArmStats, name: string, value: number, bounds: readonly number[]): void {
    // other bounds than before are other series: their counts cannot be added up
    const series = this.ensure(this.scalars, stats, `${name} ${bounds.join()}`, (arm) => ({
      name,
      arm,
      bounds,
      counts: Array<number>(bounds.length + 1).fill(0),
      sum: 0,
    }));
    if (!series) return;
    const at = bounds.findIndex((bound) => value <= bound);
    series.counts[at < 0 ? bounds.length : at]! += 1;
    series.sum += value;
  }

  private countValue(stats: ArmStats, name: string, value: string, known: readonly string[]): void {
    const series = this.ensure(this.enums, stats, name, (arm) => ({ name, arm, counts: new Map() }));
    if (!series) return;
    const shown = known.includes(value) ? value : 'other';
    series.counts.set(shown, (series.counts.get(shown) ?? 0) + 1);
  }

  private keep(stats: ArmStats, name: string, value: number): void {
    const series = this.ensure(this.values, stats, name, (arm) => ({ name, arm, last: value }));
    if (series) series.last = value;
  }

  /** Undefined: there are too many already. */
  private ensure<S>(
    all: Map<string, S>,
    { labels }: ArmStats,
    name: string,
    make: (arm: ArmStats['labels']) => S,
  ): S | undefined {
    const key = `${labels.endpoint} ${labels.version} ${labels.arm} ${name}`;
    let series = all.get(key);
    if (!series && this.size < maxSeries) {
      series = make(labels);
      all.set(key, series);
    }
    return series;
  }

  private get size(): number {
    return this.series.size + this.scalars.size + this.enums.size + this.values.size;
  }
}
