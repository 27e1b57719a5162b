import { candidateRates, ruleNames, stableRate, trafficRates } from './compare.ts';
import { drawPlot } from './plot.ts';
import { count, percent, rateName, table, time } from './words.ts';
import type { Figures, RuleName } from './worlds.ts';

const worseRates = candidateRates.filter((rate) => rate > stableRate);

const find = (figures: readonly Figures[], rule: RuleName, requestsPerMinute: number, candidate: number): Figures =>
  figures.find(
    ({ rule: name, world }) =>
      name === rule && world.requestsPerMinute === requestsPerMinute && world.candidate === candidate,
  )!;

const byRate = (figures: readonly Figures[], cell: (one: Figures) => string, candidate: number): string =>
  table(
    ['requests', ...ruleNames],
    trafficRates.map((rate) => [
      rateName(rate),
      ...ruleNames.map((rule) => cell(find(figures, rule, rate, candidate))),
    ]),
  );

export const falseRollbacks = (figures: readonly Figures[]): string =>
  byRate(
    figures,
    ({ rolledBack, undecided }) => percent(rolledBack) + (undecided > 0 ? ` (${percent(undecided)} undecided)` : ''),
    stableRate,
  );

export const promoteTimes = (figures: readonly Figures[]): string =>
  byRate(figures, ({ promoteMs }) => time(promoteMs), stableRate);

/** For each regression a table: let through, undecided, and bad requests until stopped. */
export const regressions = (figures: readonly Figures[]): string =>
  worseRates
    .map((candidate) => {
      const cell = ({ promoted, undecided, badRequests }: Figures) =>
        `${percent(promoted)} / ${percent(undecided)} / ${count(badRequests)}`;
      return `**Candidate fails in ${percent(candidate)}**\n\n${byRate(figures, cell, candidate)}`;
    })
    .join('\n\n');

export const worldTable = (figures: readonly Figures[]): string => {
  const worlds = [...new Set(figures.map(({ world }) => world))];
  const cell = ({ rolledBack, promoted, badRequests }: Figures) =>
    `${percent(rolledBack)} / ${percent(promoted)} / ${count(badRequests)}`;
  return table(
    ['users', 'stable', 'candidate', ...ruleNames],
    worlds.map((world) => [
      world.users ? `${world.users.count}, ${world.users.unevenness}` : 'no sticky key',
      percent(world.stable),
      percent(world.candidate),
      ...ruleNames.map((rule) => cell(figures.find((one) => one.rule === rule && one.world === world)!)),
    ]),
  );
};

/** Where another rule has the better figure, in sentences; found by comparing, so that none is left out. */
export function whereWorse(figures: readonly Figures[]): string {
  const names = [...new Set(figures.map(({ world }) => JSON.stringify(world)))];
  const worlds = names.map((name) => figures.filter(({ world }) => JSON.stringify(world) === name));
  const lines = worlds.flatMap((all) => {
    const ours = all.find(({ rule }) => rule === 'Perch')!;
    const others = all.filter((one) => one !== ours);
    return ours.world.candidate === ours.world.stable ? slower(ours, others) : weaker(ours, others);
  });
  return lines.map((line) => `- ${line}`).join('\n');
}

function nameOf({ world: { requestsPerMinute, users, stable, candidate } }: Figures): string {
  const who = users ? ` of ${count(users.count)} users (${users.unevenness})` : '';
  const base = stable === stableRate ? '' : ` beside ${percent(stable)}`;
  const what =
    candidate === stable
      ? `equal versions${stable === stableRate ? '' : ` at ${percent(stable)}`}`
      : `a candidate that fails in ${percent(candidate)}${base}`;
  return `At ${rateName(requestsPerMinute)}${who}, ${what}`;
}

/** Differences below this are the luck of the draw. */
const noise = 0.03;

/** One sentence for a figure of ours that others beat, with theirs; none when nobody does. */
function beaten(
  at: string,
  what: string,
  ours: Figures,
  others: readonly Figures[],
  figure: (one: Figures) => string,
  beats: (other: Figures) => boolean,
): string[] {
  // biome-ignore format: one list
  const better = others.filter(beats);
  if (better.length === 0) return [];
  return [
    `${at}, ${what}: ours ${figure(ours)}; ${better.map((other) => `${other.rule} ${figure(other)}`).join(', ')}.`,
  ];
}

function slower(ours: Figures, others: readonly Figures[]): string[] {
  const at = nameOf(ours);
  return [
    ...beaten(
      at,
      'rolled back',
      ours,
      others,
      (one) => percent(one.rolledBack),
      (other) => ours.rolledBack - other.rolledBack > noise,
    ),
    ...beaten(
      at,
      'promoted',
      ours,
      others,
      (one) => percent(one.promoted),
      (other) => other.promoted - ours.promoted > noise,
    ),
    ...beaten(
      at,
      'time to promote',
      ours,
      others,
      (one) => time(one.promoteMs),
      (other) => other.promoteMs !== null && ours.promoteMs !== null && other.promoteMs < 0.95 * ours.promoteMs,
    ),
  ];
}

function weaker(ours: Figures, others: readonly Figures[]): string[] {
  const at = nameOf(ours);
  const mostBad = (ours.badRequests ?? Number.POSITIVE_INFINITY) - 1;
  return [
    ...beaten(
      at,
      'let through',
      ours,
      others,
      (one) => percent(one.promoted),
      (other) => ours.promoted - other.promoted > noise,
    ),
    ...beaten(
      at,
      'rolled back',
      ours,
      others,
      (one) => percent(one.rolledBack),
      (other) => other.rolledBack - ours.rolledBack > noise,
    ),
    ...beaten(
      at,
      'bad requests until stopped',
      ours,
      others,
      (one) => count(one.badRequests),
      (other) => other.badRequests !== null && other.rolledBack >= 0.9 && other.badRequests < mostBad,
    ),
  ];
}

const shares = { ticks: [0, 0.25, 0.5, 0.75, 1], format: percent };
const shortRate = (perMinute: number) =>
  perMinute < 60 ? `${perMinute}/min` : `${(perMinute / 60).toLocaleString('en')}/s`;
const rates = { label: 'requests', ticks: trafficRates.map(shortRate) };

/** By file name. */
export function plots(figures: readonly Figures[]): Record<string, string> {
  const lines = (value: (one: Figures) => number | null, candidate: number) =>
    ruleNames.map((name) => ({
      name,
      values: trafficRates.map((rate) => value(find(figures, name, rate, candidate))),
    }));
  const logarithmic = (ticks: number[], format: (value: number) => string) => ({ ticks, format, logarithmic: true });
  return {
    'false-rollback.svg': drawPlot({
      title: 'Equal versions rolled back',
      x: rates,
      y: { label: 'share of runs', ...shares },
      lines: lines(({ rolledBack }) => rolledBack, stableRate),
    }),
    'missed.svg': drawPlot({
      title: 'Versions that fail in 2 %, let through',
      x: rates,
      y: { label: 'share of runs', ...shares },
      lines: lines(({ promoted }) => promoted, 0.02),
    }),
    'bad-requests.svg': drawPlot({
      title: 'Bad requests until a version that fails in 30 % is stopped',
      x: rates,
      y: { label: 'median', ...logarithmic([1, 10, 100, 1_000, 10_000, 100_000, 1_000_000], count) },
      lines: lines(({ badRequests }) => badRequests && Math.max(1, badRequests), 0.3),
    }),
    'time-to-promote.svg': drawPlot({
      title: 'Time until an equal version is let through',
      x: rates,
      y: { label: 'median', ...logarithmic([60_000, 600_000, 3_600_000, 36_000_000], time) },
      lines: lines(({ promoteMs }) => promoteMs, stableRate),
    }),
  };
}
