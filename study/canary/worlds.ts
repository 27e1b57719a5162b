import { namedPolicies } from '@perch/contracts';
import { nullRatio } from '../../libs/promotion/src/statistics/rollback-evidence.decide.ts';
import { seededRandom } from '../../libs/promotion/src/statistics/simulate-chance.ts';
import { PerchRule, type Rule } from '../../libs/promotion/src/statistics/simulate-rule.ts';
import {
  drawUsers,
  requestTraffic,
  stickyTraffic,
  type Unevenness,
} from '../../libs/promotion/src/statistics/simulate-traffic.ts';
import { median, runTrial, type Trial } from '../../libs/promotion/src/statistics/simulate-trial.ts';
import { MannWhitneyRule } from './mann-whitney.rule.ts';
import { ThresholdRule } from './threshold.rule.ts';
import { ZTestRule } from './z-test.rule.ts';

/** A stable version and a candidate of an endpoint: error rates, traffic, and whose requests they are. */
export interface World {
  requestsPerMinute: number;
  stable: number;
  candidate: number;
  users?: { count: number; unevenness: Unevenness };
}

export type RuleName = 'Perch' | 'threshold' | 'Mann–Whitney' | 'peeked z-test';

/** Other replies than failed ones: a few slow ones on both arms, none of a wrong shape. Only our rule looks at them. */
const slowRate = 0.003;

function perchRule({ requestsPerMinute, stable, users }: World): PerchRule {
  const history = { n: 1_000_000, x: 1_000_000 * stable };
  return new PerchRule({
    policy: namedPolicies.default,
    unit: users ? 'bucket' : 'request',
    requestsPerMinute,
    watchHeld: true,
    metrics: (['error', 'slow', 'contract'] as const).map((metric) => ({
      metric,
      r0: nullRatio(metric, metric === 'error' ? history : { n: 1, x: 0 }),
    })),
  });
}

export const rules: Record<RuleName, (world: World) => Rule> = {
  Perch: perchRule,
  threshold: () => new ThresholdRule(),
  'Mann–Whitney': () => new MannWhitneyRule(),
  'peeked z-test': () => new ZTestRule(),
};

/** Who has not decided after a day never will; sticky ones, drawn user by user, are watched for a quarter of it. */
const mostMs = ({ users }: World) => (users ? 6 : 24) * 3_600_000;

export interface WorldTrial extends Trial {
  /** When the candidate was let through: the bake does not count as time to promote, nor a bake's end as another decision. */
  letThroughAtMs: number | null;
}

export function tryRule(name: RuleName, world: World, seed: number, run: number): WorldTrial {
  const random = seededRandom(seed, run);
  const rates = (arm: 'stable' | 'candidate') => {
    const error = world[arm];
    return [error, slowRate * (1 - error), 0];
  };
  const traffic = world.users
    ? stickyTraffic(rates, drawUsers(random, world.users.count, world.users.unevenness, world.stable), random)
    : requestTraffic(rates, random);
  const rule = rules[name](world);
  const trial = runTrial(rule, traffic, { requestsPerMinute: world.requestsPerMinute, mostMs: mostMs(world) });
  const bakeAtMs = rule instanceof PerchRule ? rule.bakeAtMs : null;
  return { ...trial, letThroughAtMs: trial.end === 'promoted' ? (bakeAtMs ?? trial.atMs) : null };
}

/** What came of many trials of one rule in one world. */
export interface Figures {
  rule: RuleName;
  world: World;
  runs: number;
  rolledBack: number;
  promoted: number;
  /** Neither within a day. */
  undecided: number;
  /** Failed requests on the candidate until it was stopped: the median of those that were. */
  badRequests: number | null;
  /** The median of those that were promoted. */
  promoteMs: number | null;
}

export function figuresOf(rule: RuleName, world: World, seed: number, runs: number): Figures {
  const trials = Array.from({ length: runs }, (_, run) => tryRule(rule, world, seed, run));
  const share = (end: Trial['end']) => trials.filter((trial) => trial.end === end).length / runs;
  const stopped = trials.filter(({ end }) => end === 'rolled_back');
  const through = trials.flatMap(({ letThroughAtMs }) => letThroughAtMs ?? []);
  return {
    rule,
    world,
    runs,
    rolledBack: share('rolled_back'),
    promoted: share('promoted'),
    undecided: 1 - share('rolled_back') - share('promoted'),
    badRequests: median(stopped.map(({ badRequests }) => badRequests)),
    promoteMs: median(through),
  };
}
