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
  users?: { buckets: Uint16Array; outcomes: Int8Array };
  /**
   * By metric, what the rollback rule's counts grow by, where it takes others than those of whole cohorts: less than nothing
   * where a request that was counted while it was on its way ended well. Left out: it takes the same.
   */
  split?: { stable: number[]; candidate: number[] };
}

/** Chances that a request has the event of each metric: at most one of them, so that their sum stays below 1. */
export type RatesAt = (arm: 'stable' | 'candidate', atMs: number) => readonly number[];

/** Where samples come from: `requests` in the interval that ends at `atMs`, with that share for the candidate. */
export type Traffic = (share: number, requests: number, atMs: number) => Sample;

/** Each request is assigned by chance, for itself. */
export function requestTraffic(rates: RatesAt, random: Random): Traffic {
  const draw = (n: number, chances: readonly number[]): ArmSample => {
    let rest = 0;
    for (const chance of chances) rest += chance;
    let left = drawBinomial(random, n, rest); // with an event of any metric; which one is told apart only then
    if (left === 0) return { n, x: chances.map(() => 0) };
    const x = chances.map((chance) => {
      const events = drawBinomial(random, left, Math.min(1, chance / rest));
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

export type Unevenness = 'equal' | 'beta' | 'always-failing';

/**
 * By user: what its chances of an event are multiplied by. `equal`: all alike. `beta`: each has its own rate from
 * Beta(0.05·p, 0.05·(1−p)): nearly all never err and a few nearly always, p on the average. `always-failing`: 0.5 % of them
 * always err, in either arm.
 */
export const drawUsers = (random: Random, count: number, unevenness: Unevenness, p: number): Float64Array =>
  Float64Array.from({ length: count }, () => {
    if (unevenness === 'beta') return drawBeta(random, 0.05 * p, 0.05 * (1 - p)) / p;
    return unevenness === 'always-failing' && random() < 0.005 ? Number.POSITIVE_INFINITY : 1;
  });

/** A bucket for each user, as a fresh salt gives it. */
export const drawBuckets = (random: Random, users: number): Uint16Array =>
  Uint16Array.from({ length: users }, () => random() * bucketCount);

/** Which metric's event the request has, or −1. */
function outcomeOf(draw: number, chances: readonly number[], factor: number): number {
  let left = draw;
  for (let metric = 0; metric < chances.length; metric += 1) {
    const chance = chances[metric]!;
    if (chance <= 0) continue;
    left -= chance * factor;
    if (left < 0) return metric;
  }
  return -1;
}

/** Requests come from users by chance, each user alike often; the arm is that of the user's bucket. */
export function stickyTraffic(rates: RatesAt, users: Float64Array, random: Random): Traffic {
  const bucketOf = drawBuckets(random, users.length);
  return (share, requests, atMs) => {
    const owned = bucketsOf(share);
    const chances = { stable: rates('stable', atMs), candidate: rates('candidate', atMs) };
    const none = () => chances.stable.map(() => 0);
    const sample = { stable: { n: 0, x: none() }, candidate: { n: 0, x: none() } };
    const buckets = new Uint16Array(requests);
    const outcomes = new Int8Array(requests);
    for (let request = 0; request < requests; request += 1) {
      const place = random() * users.length;
      const user = Math.floor(place); // and what is left is uniform too
      const bucket = bucketOf[user]!;
      const arm = bucket < owned ? 'candidate' : 'stable';
      const outcome = outcomeOf(place - user, chances[arm], users[user]!);
      buckets[request] = bucket;
      outcomes[request] = outcome;
      sample[arm].n += 1;
      if (outcome >= 0) sample[arm].x[outcome]! += 1;
    }
    return { ...sample, users: { buckets, outcomes } };
  };
}
