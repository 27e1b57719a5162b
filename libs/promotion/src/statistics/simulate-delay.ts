import type { ArmSample, Sample, Traffic } from './simulate-traffic.ts';

/** How long after its arrival a failure of each arm shows; what succeeds ends within its own report interval. */
export interface FailureDelays {
  stableMs: number;
  candidateMs: number;
}

interface Cohort {
  sample: Sample;
  closesAtMs: number;
}

/**
 * Reports as routers close them: the requests of an interval count together once all of them have ended, and never before
 * those of an earlier one. So what counts does not depend on how fast either arm fails.
 */
export function closedCohorts(traffic: Traffic, delays: FailureDelays): Traffic {
  const open: Cohort[] = [];
  return (share, requests, atMs) => {
    const sample = traffic(share, requests, atMs);
    const waitMs = Math.max(
      failed(sample.stable) ? delays.stableMs : 0,
      failed(sample.candidate) ? delays.candidateMs : 0,
    );
    open.push({ sample, closesAtMs: atMs + waitMs });
    const waiting = open.findIndex(({ closesAtMs }) => closesAtMs > atMs);
    return sumOf(open.splice(0, waiting < 0 ? open.length : waiting), sample);
  };
}

/**
 * The same traffic spread over several worker processes, each of which closes its own intervals. One that waits for a late
 * failure of stable is behind the others, so that together they are not one order of arrival any more.
 */
export function closedByWorkers(workers: number) {
  return (traffic: Traffic, delays: FailureDelays): Traffic => {
    const each = Array.from({ length: workers }, () => closedCohorts(traffic, delays));
    return (share, requests, atMs) => {
      const parts = each.map((worker, at) => worker(share, Math.floor((requests + at) / workers), atMs));
      const cohorts = parts.map((sample) => ({ sample, closesAtMs: atMs }));
      return sumOf(cohorts, parts[0]!);
    };
  };
}

/** Reports that count each request as soon as it ended: here the arm that fails fast is ahead of the other. */
export function endedRequests(traffic: Traffic, delays: FailureDelays): Traffic {
  const later: { arm: 'stable' | 'candidate'; x: number[]; atMs: number }[] = [];
  return (share, requests, atMs) => {
    const sample = traffic(share, requests, atMs);
    later.push({ arm: 'stable', x: sample.stable.x, atMs: atMs + delays.stableMs });
    later.push({ arm: 'candidate', x: sample.candidate.x, atMs: atMs + delays.candidateMs });
    const seen = sumOf([], sample);
    seen.stable.n = sample.stable.n;
    seen.candidate.n = sample.candidate.n;
    for (let at = later.length - 1; at >= 0; at -= 1) {
      const { arm, x, atMs: showsAtMs } = later[at]!;
      if (showsAtMs > atMs) continue;
      for (let metric = 0; metric < x.length; metric += 1) seen[arm].x[metric]! += x[metric]!;
      later.splice(at, 1);
    }
    return seen;
  };
}

const failed = ({ x }: ArmSample) => x.some((events) => events > 0);

function sumOf(cohorts: readonly Cohort[], like: Sample): Sample {
  const sum = { stable: emptyArm(like.stable), candidate: emptyArm(like.candidate) };
  for (const { sample } of cohorts)
    for (const arm of ['stable', 'candidate'] as const) {
      sum[arm].n += sample[arm].n;
      for (let metric = 0; metric < sum[arm].x.length; metric += 1) sum[arm].x[metric]! += sample[arm].x[metric]!;
    }
  return sum;
}

const emptyArm = ({ x }: ArmSample): ArmSample => ({ n: 0, x: x.map(() => 0) });
