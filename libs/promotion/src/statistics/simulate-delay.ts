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
 * Whole cohorts as a router closes them, for promotion: the requests of an interval count together once all of them have
 * ended, and never before those of an earlier one. So what counts does not depend on how fast either arm fails.
 */
function closedCohorts(traffic: Traffic, delays: FailureDelays): Traffic {
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

/**
 * Reports as routers make them: whole cohorts for promotion, and for the rollback rule the failures that have shown, with
 * each of stable's that has not shown yet as an event of every metric, for it is still on its way. Without a change of the
 * share: what shows late is counted under the share of then.
 */
export function reportedByWorkers(workers: number) {
  return (traffic: Traffic, delays: FailureDelays): Traffic => {
    const splits = Array.from({ length: workers }, () => new WorkerSplit(delays));
    let worker = 0;
    const spread: Traffic = (share, requests, atMs) => {
      const sample = traffic(share, requests, atMs);
      splits[worker % workers]!.arrive(sample, atMs);
      worker += 1;
      return sample;
    };
    const closed = closedByWorkers(workers)(spread, delays);
    return (share, requests, atMs) => {
      const sample = closed(share, requests, atMs);
      const split = { stable: sample.stable.x.map(() => 0), candidate: sample.candidate.x.map(() => 0) };
      for (const one of splits) one.tell(split, atMs);
      return { ...sample, split };
    };
  };
}

/** What one worker tells the rollback rule: the growth of its counts. */
class WorkerSplit {
  private later: { sample: Sample; stableAtMs: number; candidateAtMs: number }[] = [];
  /** Stable's requests on their way, as told last. */
  private open = 0;
  private toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly delays: FailureDelays) {}

  arrive(sample: Sample, atMs: number): void {
    const { stableMs, candidateMs } = this.delays;
    this.later.push({ sample, stableAtMs: atMs + stableMs, candidateAtMs: atMs + candidateMs });
  }

  tell(split: NonNullable<Sample['split']>, atMs: number): void {
    let open = 0;
    for (const { sample, stableAtMs, candidateAtMs } of this.later) {
      if (stableAtMs > atMs) for (const x of sample.stable.x) open += x;
      else if (!this.told(stableAtMs)) addTo(split.stable, sample.stable.x);
      if (candidateAtMs <= atMs && !this.told(candidateAtMs)) addTo(split.candidate, sample.candidate.x);
    }
    for (let metric = 0; metric < split.stable.length; metric += 1) split.stable[metric]! += open - this.open;
    this.open = open;
    this.toldAtMs = atMs;
    this.later = this.later.filter((one) => Math.max(one.stableAtMs, one.candidateAtMs) > atMs);
  }

  private told(showsAtMs: number): boolean {
    return showsAtMs <= this.toldAtMs;
  }
}

const addTo = (sum: number[], more: readonly number[]): void => {
  for (let at = 0; at < sum.length; at += 1) sum[at]! += more[at]!;
};

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
      addTo(seen[arm].x, x);
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
      addTo(sum[arm].x, sample[arm].x);
    }
  return sum;
}

const emptyArm = ({ x }: ArmSample): ArmSample => ({ n: 0, x: x.map(() => 0) });
