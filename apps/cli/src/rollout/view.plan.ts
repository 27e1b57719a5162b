import { isOver, type Rollout, type RolloutEvent } from '@perch/contracts';
import { formatAge } from '../duration.ts';
import { fillBar } from './bar.plan.ts';
import type { Glyphs } from './glyphs.ts';
import { evidenceLines, metricLines } from './metric.plan.ts';
import { countText, figureText, percentText, spanText } from './number.plan.ts';
import { clip, label, labelWidth, oneLine, type Paint, standing, stateColor, wrap } from './words.plan.ts';

/** All that a picture of a rollout is made of: the same values give the same lines. */
export interface RolloutView {
  rollout: Rollout;
  /** Oldest first. */
  events: readonly RolloutEvent[];
  now: number;
  /** Columns that there are. */
  width: number;
  /** Rows that there are; undefined: as many as it takes. */
  height?: number | undefined;
  glyphs: Glyphs;
  paint: Paint;
  /** A last line about the watching itself. */
  note?: string | undefined;
}

const leastWidth = 76;
const mostWidth = 120;
const mostEvents = 10;
const leastEvents = 2;

/** The picture, a line each. Where rows are few it is drawn closer, then cut at its end. */
export function renderRollout(view: RolloutView): string[] {
  const sized = { ...view, width: Math.max(leastWidth, Math.min(mostWidth, view.width)) };
  const { height, note, paint, width, glyphs } = sized;
  const last = note === undefined ? [] : [paint.yellow(clip(oneLine(note), width, glyphs))];
  const full = [...headLines(sized), ...countLines(sized, false)];
  if (height === undefined) return [...full, ...eventLines(sized, mostEvents), ...last];
  const room = height - last.length;
  const wanted = full.length + (view.events.length > 0 ? leastEvents + 2 : 0);
  const body = wanted <= room ? full : [...headLines(sized), ...countLines(sized, true)];
  const lines = [...body, ...eventLines(sized, Math.min(mostEvents, room - body.length - 2))];
  if (lines.length <= room) return [...lines, ...last];
  const shown = lines.slice(0, Math.max(1, room - 1));
  return [...shown, `${glyphs.more} ${lines.length - shown.length} more lines in a higher window`, ...last];
}

function headLines(view: RolloutView): string[] {
  const { rollout, width, glyphs, paint } = view;
  const versions = `  version ${rollout.stable.version} ${glyphs.arrow} ${rollout.candidate.version}`;
  const state = clip(standing(rollout), 30, glyphs);
  const name = clip(oneLine(rollout.endpoint), width - versions.length - state.length - 2, glyphs);
  const space = ' '.repeat(Math.max(2, width - name.length - versions.length - state.length));
  return [
    `${paint.bold(name)}${versions}${space}${paint[stateColor(rollout)](state)}`,
    paint.dim(glyphs.rule.repeat(width)),
    stageLine(view),
    trafficLine(view),
    ...timeLines(view),
  ];
}

function stageLine({ rollout, glyphs, paint }: RolloutView): string {
  const { state, policy } = rollout;
  const shadow = policy.shadow || state === 'shadowing' ? ['shadowing'] : [];
  const end = state === 'rolled_back' || state === 'aborted' ? state : 'promoted';
  const mark = (stage: string) => {
    const words = stage.replace('_', ' ');
    return stage === state ? paint[stateColor(rollout)](`[${words}]`) : paint.dim(words);
  };
  const stages = [...(state === 'pending' ? [state] : []), 'verifying', ...shadow, 'shifting', 'baking', end];
  return `${label('state')}${stages.map(mark).join(paint.dim(` ${glyphs.next} `))}`;
}

function trafficLine({ rollout, width, glyphs, paint }: RolloutView): string {
  const { weightPercent, candidate, state } = rollout;
  const words = `  ${figureText(weightPercent)} % on version ${candidate.version}`;
  const bar = fillBar(weightPercent / 100, width - labelWidth - words.length, glyphs);
  return `${label('traffic')}${paint[state === 'promoted' ? 'green' : 'cyan'](bar)}${words}`;
}

function timeLines({ rollout, now, width }: RolloutView): string[] {
  const { startedAt, endedAt, stepAt, decision, queuedVersion, restarts, state, reason } = rollout;
  const since = (at: string) => spanText((endedAt ? Date.parse(endedAt) : now) - Date.parse(at));
  const times = isOver(state) ? `${since(startedAt)}` : `${since(startedAt)}; this step ${since(stepAt)}`;
  const again = restarts > 0 ? `; started anew ${restarts === 1 ? 'once' : `${restarts} times`}` : '';
  const why = wrap(reason, width - labelWidth).slice(0, 3);
  const next = isOver(state) ? null : (decision?.nextStepInMs ?? null);
  return [
    `${label(isOver(state) ? 'took' : 'runs for')}${times}${again}`,
    ...why.map((line, at) => `${label(at === 0 ? 'why' : '')}${line}`),
    ...(next === null ? [] : [`${label('next step')}in about ${spanText(next)}, if nothing changes`]),
    ...(queuedVersion === null ? [] : [`${label('queued')}version ${queuedVersion} waits for the end of this`]),
  ];
}

/** What was counted and what follows from it. */
function countLines(view: RolloutView, compact: boolean): string[] {
  const { decision, sticky, state } = view.rollout;
  const gap = compact ? [] : [''];
  const side = sideLines(view);
  const beside = side.length > 0 ? [...gap, ...side] : [];
  if (!decision) return isOver(state) ? beside : ['', 'Nothing was judged yet.', ...beside];
  const metric = { ...view, sticky, compact };
  const metrics = decision.readings.flatMap((reading) => [...gap, ...metricLines(reading, metric)]);
  return [...(compact ? [''] : []), ...metrics, ...gap, ...evidenceLines(decision, metric), ...beside];
}

function sideLines({ rollout, width, glyphs }: RolloutView): string[] {
  const { pairs, fallbacks, stable, candidate, policy, decision } = rollout;
  const lines: string[] = [];
  if (fallbacks > 0) {
    const requests = `${countText(fallbacks)} ${fallbacks === 1 ? 'request' : 'requests'}`;
    lines.push(`fallback  ${requests} of version ${candidate.version} answered by version ${stable.version}`);
  }
  if (pairs) {
    const wanted = policy.shadow ? ` of ${countText(policy.shadow.pairs)}` : '';
    const agree = pairs.compared > 0 ? `, ${percentText(pairs.agree / pairs.compared)} of outputs agree` : '';
    const dropped = pairs.dropped > 0 ? `, ${countText(pairs.dropped)} not sent` : '';
    lines.push(`shadow    ${countText(pairs.pairs)}${wanted} pairs${agree}${dropped}`);
  }
  for (const { flag, stable: old, candidate: young } of decision?.feedback ?? [])
    lines.push(
      `feedback  ${oneLine(flag)}: ${shareText(young)} on version ${candidate.version}, ${shareText(old)} on version ${stable.version}`,
    );
  return lines.map((line) => clip(line, width, glyphs));
}

/** Of so many replies. */
const shareText = ({ n, x }: { n: number; x: number }): string =>
  n === 0 ? 'none yet' : `${percentText(x / n)} of ${countText(n)}`;

export const eventText = ({ type, actor, message }: RolloutEvent): string =>
  oneLine(`${type.replace('_', ' ').padEnd(13)}${actor === 'system' ? '' : `${actor}: `}${message}`);

/** The newest that fit, newest first. */
function eventLines({ events, now, width, glyphs, paint }: RolloutView, most: number): string[] {
  const newest = [...events].reverse().slice(0, Math.max(0, most));
  if (newest.length === 0) return [];
  const line = (event: RolloutEvent) => {
    const age = formatAge(event.at, now).padEnd(12);
    return `  ${paint.dim(age)}${clip(eventText(event), width - 2 - age.length, glyphs)}`;
  };
  return ['', paint.bold('EVENTS'), ...newest.map(line)];
}
