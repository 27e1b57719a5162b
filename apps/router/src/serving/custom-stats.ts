import type { ArmStats } from './request-stats.ts';

export type CustomKind = 'observed' | 'counted' | 'flagged';

export interface CustomSeries {
  kind: CustomKind;
  name: string;
  arm: ArmStats['labels'];
  sum: number;
  count: number;
}

const maxSeries = 2_000;
const properName = /^[a-z][a-z0-9_]{0,63}$/;

/** What processing modules measure by `ctx.observe`, `ctx.count` and `ctx.flag`; a bounded number of series. */
export class CustomStats {
  readonly series = new Map<string, CustomSeries>();

  observe(stats: ArmStats, name: string, value: number): void {
    this.add('observed', stats, name, value);
  }
  count(stats: ArmStats, name: string, by: number): void {
    this.add('counted', stats, name, by);
  }
  flag(stats: ArmStats, name: string): void {
    this.add('flagged', stats, name, 1);
  }

  private add(kind: CustomKind, { labels }: ArmStats, name: string, value: number): void {
    if (!Number.isFinite(value) || !properName.test(name)) return;
    const key = `${kind} ${labels.endpoint} ${labels.version} ${labels.arm} ${name}`;
    let series = this.series.get(key);
    if (!series) {
      if (this.series.size >= maxSeries) return;
      series = { kind, name, arm: labels, sum: 0, count: 0 };
      this.series.set(key, series);
    }
    series.sum += value;
    series.count += 1;
  }
}
