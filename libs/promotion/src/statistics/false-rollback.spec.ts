import { describe, expect, it } from 'vitest';
import {
  delayCases, driftCases, falseRollbackRate, fixedCases, type NullCase, rampCases, stickyCases,
} from './simulate-null.ts'; // biome-ignore format: one list

/** Chosen once, before the first run. */
const seed = 20_251;
const runs = 2_000;
/** Each of them draws a user for each of 20,000 requests; `npm run study:canary` makes 2,000 runs of these too. */
const stickyRuns = 500;

const named = (cases: NullCase[]) => cases.map((nullCase) => [nullCase.name, nullCase] as const);

/** Equal versions, all default metrics on, 20,000 requests a run, a look at every report: α = 0.05 are rolled back at most. */
describe('false rollback', () => {
  it.each(named([...fixedCases, ...rampCases, ...driftCases, ...delayCases]))(
    '%s',
    (_name, nullCase) => expect(falseRollbackRate(nullCase, seed, runs)).toBeLessThanOrEqual(0.05),
    60_000,
  );

  it.each(named(stickyCases))(
    '%s',
    (_name, nullCase) => expect(falseRollbackRate(nullCase, seed, stickyRuns)).toBeLessThanOrEqual(0.05),
    60_000,
  );
});
