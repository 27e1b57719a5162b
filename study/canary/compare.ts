import type { Unevenness } from '../../libs/promotion/src/statistics/simulate-traffic.ts';
import { type Figures, figuresOf, type RuleName, rules, type World } from './worlds.ts';

/** Requests a minute, all arms: 0.3 rpm to 1,000 rps. */
export const trafficRates = [0.3, 6, 60, 600, 6_000, 60_000];
/** Error rates of the candidate, from none that is worse to a dead one. */
export const stableRate = 0.001;
export const candidateRates = [0.001, 0.006, 0.02, 0.1, 0.3, 1];
export const ruleNames = Object.keys(rules) as RuleName[];

export interface Amount {
  nullRuns: number;
  worseRuns: number;
  stickyRuns: number;
}

const seed = 20_254;

/** Every rule in every world, drawn from the same seeds. `say` hears what was done. */
export function compareRules(amount: Amount, say: (line: string) => void): Figures[] {
  return trafficRates.flatMap((requestsPerMinute) =>
    candidateRates.flatMap((candidate) =>
      ruleNames.map((rule) => {
        const world: World = { requestsPerMinute, stable: stableRate, candidate };
        const figures = figuresOf(rule, world, seed, candidate === stableRate ? amount.nullRuns : amount.worseRuns);
        say(
          `${rule}, ${requestsPerMinute} a minute, candidate ${candidate}: back ${figures.rolledBack}, through ${figures.promoted}`,
        );
        return figures;
      }),
    ),
  );
}

/** Endpoints whose stable version fails in 2 % of the requests as well, at 10 requests a second. */
export const unreliable: World[] = [
  { requestsPerMinute: 600, stable: 0.02, candidate: 0.02 },
  { requestsPerMinute: 600, stable: 0.02, candidate: 0.1 },
];

const sticky = (count: number, unevenness: Unevenness, rates: readonly number[]): World[] =>
  rates.map((candidate) => ({ requestsPerMinute: 600, stable: 0.01, candidate, users: { count, unevenness } }));

/** Users of a sticky key at 10 requests a second. Uneven users fail alike on either version, so only equal ones can get worse. */
export const stickyWorlds: World[] = [
  ...sticky(1_000, 'equal', [0.01, 0.05, 0.3]),
  ...sticky(1_000, 'always-failing', [0.01, 0.05, 0.3]),
  ...sticky(1_000, 'beta', [0.01]),
  ...sticky(10_000, 'equal', [0.01, 0.05, 0.3]),
];

export const compareIn = (worlds: readonly World[], runs: number, say: (line: string) => void): Figures[] =>
  worlds.flatMap((world) =>
    ruleNames.map((rule) => {
      const figures = figuresOf(rule, world, seed, runs);
      say(`${rule}, ${JSON.stringify(world)}: back ${figures.rolledBack}, through ${figures.promoted}`);
      return figures;
    }),
  );
