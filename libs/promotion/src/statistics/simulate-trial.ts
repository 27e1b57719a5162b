import type { Rule, TrialEnd } from './simulate-rule.ts';
import type { Traffic } from './simulate-traffic.ts';

export interface TrialLength {
  /** All arms; they arrive evenly. */
  requestsPerMinute: number;
  /** Until so many requests, if nothing ended the trial before. */
  mostRequests?: number | undefined;
  mostMs: number;
  /** Time between two looks; left out: a second at first, and later a three-hundredth of the time that has passed. */
  intervalMs?: number | undefined;
}

export interface Trial {
  end: TrialEnd | 'unfinished';
  atMs: number;
  requests: number;
  candidateRequests: number;
  /** Requests with an event of any metric that went to the candidate until the end. */
  badRequests: number;
}

const reportMs = 1_000;
const looksInPast = 300;

/** Lets traffic come until the rule ends it. */
export function runTrial(rule: Rule, traffic: Traffic, length: TrialLength): Trial {
  const { requestsPerMinute, mostRequests = Number.POSITIVE_INFINITY, mostMs, intervalMs } = length;
  const trial: Trial = { end: 'unfinished', atMs: 0, requests: 0, candidateRequests: 0, badRequests: 0 };
  while (trial.atMs < mostMs && trial.requests < mostRequests) {
    trial.atMs += intervalMs ?? Math.max(reportMs, trial.atMs / looksInPast);
    const due = Math.floor((requestsPerMinute * trial.atMs) / 60_000);
    const sample = traffic(rule.share, Math.min(due, mostRequests) - trial.requests, trial.atMs);
    trial.requests += sample.stable.n + sample.candidate.n;
    trial.candidateRequests += sample.candidate.n;
    for (const events of sample.candidate.x) trial.badRequests += events;
    const end = rule.look(sample, trial.atMs);
    if (end) return { ...trial, end };
  }
  return trial;
}

/** The value below which the share `part` of the values lies; null of none. */
export function quantile(values: readonly number[], part: number): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? null;
}
export const median = (values: readonly number[]): number | null => quantile(values, 0.5);
