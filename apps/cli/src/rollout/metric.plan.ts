import type { MetricReading } from '@perch/contracts';
import { columnOf, intervalBar, logBar, logShare, scaleLine } from './bar.plan.ts';
import type { Glyphs } from './glyphs.ts';
import { countText, figureText, percentText, pointsText } from './number.plan.ts';
import { type Color, clip, label, labelWidth, oneLine, type Paint } from './words.plan.ts';

export interface MetricView {
  width: number;
  glyphs: Glyphs;
  paint: Paint;
  /** What is counted: users under a sticky key, else requests. */
  sticky: boolean;
  /** Without the figures below the bars. */
  compact: boolean;
}

const armWidth = 10;
const countWidth = 9;
const rateWidth = 10;
const barStart = 2 + armWidth + countWidth + 4 + countWidth + rateWidth + 2;

/** Both arms on one scale: the candidate's interval has to end at or left of the limit, stable's lower bound plus the margin. */
export function metricLines(reading: MetricReading, view: MetricView): string[] {
  const { paint, width, glyphs } = view;
  const { stable, candidate, gap, margin } = reading;
  const proved = gap <= margin;
  const limit = stable.lower + margin;
  // Next to a candidate with nearly all of the traffic little is known of stable: that must not squeeze the rest.
  const judged = Math.max(candidate.upper, limit);
  const most = Math.min(1, Math.max(judged, Math.min(stable.upper, 4 * judged)) * 1.08) || 1;
  const barWidth = width - barStart;
  const row = (arm: string, { n, x, lower, upper }: MetricReading['stable'], color: Color) => {
    const counts = `${countText(x).padStart(countWidth)} of ${countText(n).padStart(countWidth)}`;
    const rate = (n > 0 ? percentText(x / n) : '-').padStart(rateWidth);
    const bar = intervalBar({ lower, upper, point: n > 0 ? x / n : undefined, most, limit }, barWidth, glyphs);
    return `  ${arm.padEnd(armWidth)}${counts}${rate}  ${paint[color](bar.trimEnd())}`;
  };
  const marks = [
    [columnOf(limit / most, barWidth), `${glyphs.up} ${percentText(limit)}`],
    [0, '0'],
    [barWidth - 1, percentText(most)],
  ] as const;
  return [
    titleLine(reading, proved, view),
    row('stable', stable, 'cyan'),
    row('candidate', candidate, proved ? 'green' : 'yellow'),
    ...(view.compact ? [] : [`${' '.repeat(barStart)}${paint.dim(scaleLine(marks, barWidth).trimEnd())}`]),
  ];
}

function titleLine({ metric, gap, margin, e }: MetricReading, proved: boolean, view: MetricView): string {
  const { width, glyphs, paint, sticky } = view;
  const judged = `gap ${pointsText(gap)} ${proved ? 'within' : 'over'} the margin of ${pointsText(margin)} points`;
  const evidence = `E ${figureText(e)}`;
  const room = width - judged.length - evidence.length - 4;
  const name = clip(oneLine(metric), Math.min(room, 24), glyphs);
  const unit = sticky && name.length + 8 <= room ? '  users' : '';
  const space = ' '.repeat(room - name.length - unit.length + 2);
  const verdict = paint[proved ? 'green' : 'yellow'](judged);
  return `${paint.bold(name)}${paint.dim(unit)}${space}${paint.dim(evidence)}  ${verdict}`;
}

/** E of all metrics together, on a log scale that ends a decade above the threshold. */
export function evidenceLines({ e, threshold }: { e: number; threshold: number }, view: MetricView): string[] {
  const { width, glyphs, paint, compact } = view;
  const scale = { least: 0.01, most: threshold * 10 };
  const barWidth = width - labelWidth;
  const reached = e >= threshold;
  const at = (value: number) => columnOf(logShare(value, scale), barWidth);
  const marks = [threshold, 0.01, 1, 0.1, 10, 100].map((value) => [at(value), figureText(value)] as const);
  const words = `${figureText(e)}; from ${figureText(threshold)} on it is rolled back`;
  return [
    `${paint.bold(label('E'))}${reached ? paint.red(words) : words}`,
    `${label('')}${paint[reached ? 'red' : 'cyan'](logBar(e, threshold, scale, barWidth, glyphs))}`,
    ...(compact ? [] : [`${label('')}${paint.dim(scaleLine(marks, barWidth).trimEnd())}`]),
  ];
}
