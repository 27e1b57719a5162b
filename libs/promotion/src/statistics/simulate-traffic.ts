import { bucketCount, bucketsOf } from '@perch/contracts';
import { drawBeta, drawBinomial, type Random } from './simulate-chance.ts';

/** Requests of one arm in one report interval, and how many of them had the event of each metric. */
export interface ArmSample {
  n: number;
  x: number[];
}

/** What arrived in one interval. Under a sticky key also who asked, in order: buckets, and the metric of the event or −1. */
export interface Sample {
  stable: ArmSample;
  candidate: ArmSample;
  users?: { buckets: number[]; outcomes: number[] };
}

/** Chances that a request has the event of each metric: at most one of them, so that their sum stays below 1. */
export type RatesAt = (arm: 'stable' | 'candidate', atMs: number) => readonly number[];

/** Where samples come from: `requests` in the interval that ends at `atMs`, with that share for the candidate. */
export type Traffic = (share: number, requests: number, atMs: number) => Sample;

/** Each request is assigned by chance, for itself. */
export function requestTraffic(rates: RatesAt, random: Random): Traffic {
  const draw = (n: number, chances: readonly number[]): ArmSample => {
    let left = n;
    let rest = 1;
    const x = chances.map((chance) => {
      const events = drawBinomial(random, left, chance / rest);
      left -= events;
      rest -= chance;
      return events;
    });
    return { n, x };
  };
  return (share, requests, atMs) => {
    const onCandidate = drawBinomial(random, requests, share);
    return {
      stable: draw(requests - onCandidate, rates('stable', atMs)),
      candidate: draw(onCandidate, rates('candidate', atMs)),
    };
  };
}

/** Users of a sticky key, with how often each errs compared with the usual. */
export interface Users {
  buckets: Uint16Array;
  /** By user: what its chances are multiplied by; or, below 0, the chance itself with its sign turned. */
  factors: Float64Array;
}

export type Unevenness = 'equal' | 'beta' | 'always-failing';

/**
 * Users with a bucket each by chance, as a fresh salt gives it. `equal`: all alike. `beta`: each has its own rate from
 * Beta(0.05·p, 0.05·(1−p)): nearly all never err and a few nearly always, p on the average. `always-failing`: 0.5 % of them
 * always err, in either arm.
 */
export function drawUsers(random: Random, count: number, unevenness: Unevenness, p: number): Users {
  const buckets = Uint16Array.from({ length: count }, () => Math.floor(random() * bucketCount));
  const factors = Float64Array.from({ length: count }, () => {
    if (unevenness === 'beta') return drawBeta(random, 0.05 * p, 0.05 * (1 - p)) / p;
    return unevenness === 'always-failing' && random() < 0.005 ? Number.POSITIVE_INFINITY : 1;
  });
  return { buckets, factors };
}

/** Requests come from users by chance, each user alike often; the arm is that of the user's bucket. */
export function stickyTraffic(rates: RatesAt, users: Users, random: Random): Traffic {
  const outcomeOf = (chances: readonly number[], factor: number): number => {
    let draw = random();
    for (let metric = 0; metric < chances.length; metric += 1) {
      draw -= chances[metric]! > 0 ? chances[metric]! * factor : 0;
      if (draw < 0) return metric;
    }
    return -1;
  };
  return (share, requests, atMs) => {
    const owned = bucketsOf(share);
    const chances = { stable: rates('stable', atMs), candidate: rates('candidate', atMs) };
    const none = () => chances.stable.map(() => 0);
    const sample = { stable: { n: 0, x: none() }, candidate: { n: 0, x: none() } };
    const buckets: number[] = [];
    const outcomes: number[] = [];
    for (let request = 0; request < requests; request += 1) {
      const user = Math.floor(random() * users.buckets.length);
      const bucket = users.buckets[user]!;
      const arm = bucket < owned ? 'candidate' : 'stable';
      const outcome = outcomeOf(chances[arm], users.factors[user]!);
      sample[arm].n += 1;
      if (outcome >= 0) sample[arm].x[outcome]! += 1;
      buckets.push(bucket);
      outcomes.push(outcome);
    }
    return { ...sample, users: { buckets, outcomes } };
  };
}
