import { requestsOfRun } from '../../libs/promotion/src/statistics/simulate-null.ts';

export interface StudyParts {
  runs: { nullRuns: number; worseRuns: number; stickyRuns: number; promised: number };
  falseRollbacks: string;
  promoteTimes: string;
  regressions: string;
  unreliable: string;
  sticky: string;
  whereWorse: string;
  nulls: string;
  delays: string;
  slow: string;
  power: string;
  promotion: string;
}

/** The page around the tables. Sentences here describe what was done; what came out stands in the tables. */
export const studyText = (parts: StudyParts): string => `# Four rules for a canary, simulated

Written by \`npm run study:canary\`: every figure comes from seeded simulations of this run, none is typed in. Traffic arrives
evenly; each request fails by its version's own rate; nobody's servers are involved. Stable fails in 0.1 % of the requests
unless said otherwise. A rule that has not decided after 24 hours counts as *undecided*.

- **Perch**: the policy \`default\` (ramp \`auto\`, rollback by E at α = 0.05, promotion by confidence sequences, all default metrics
  on, a few slow replies on both arms), the very functions that the control plane runs. Where the policy holds a rollout for want
  of evidence (after an hour), it stays where it is, guarded, until a person comes: *undecided* here.
- **threshold**: a fixed success rate of 99 % checked each minute, five failed checks go back, a minute without requests is a failed
  check, steps of 10 % up to 50 % (as documented for Flagger).
- **Mann–Whitney**: a score after each of three hours by a Mann–Whitney test on per-minute error rates at 10 % of the traffic (as
  Kayenta's judge is described: 98 % confidence, effects below a quarter of the estimated shift tolerated).
- **peeked z-test**: a z-test of two proportions on everything so far at 10 % of the traffic, looked at each minute at p < 0.05, promoted
  after an hour.

The other rules are written from public descriptions of their ideas, in some 50 lines each (\`study/canary/*.rule.ts\`); they are not
those products, which have more settings than these.

## Equal versions

### Rolled back although nothing is wrong

${parts.runs.nullRuns} runs each.

![Equal versions rolled back](canary-study/false-rollback.svg)

${parts.falseRollbacks}

### Time until let through

Median of the runs that were promoted; our bake (10 minutes at 99 %) comes after it, the others have none.

![Time until an equal version is let through](canary-study/time-to-promote.svg)

${parts.promoteTimes}

## Worse versions

Each cell: let through / undecided after a day / bad requests until stopped (median of the runs that were stopped; the bad requests
of a version that was let through are without end). ${parts.runs.worseRuns} runs each.

![Let through](canary-study/missed.svg)

![Bad requests until stopped](canary-study/bad-requests.svg)

${parts.regressions}

## An endpoint that is unreliable itself

At 10 requests a second, ${parts.runs.worseRuns} runs each. Each cell: rolled back / let through / bad requests until stopped;
the rest is undecided.

${parts.unreliable}

## Users of a sticky key

10 requests a second, stable at 1 %, ${parts.runs.stickyRuns} runs each, watched for 6 hours. \`always-failing\`: 0.5 % of the users fail on
either version; \`beta\`: each user's own rate is drawn from Beta(0.05·p, 0.05·(1−p)), so nearly all errors come from a few users. Our
rule counts users, the others requests. Each cell: rolled back / let through / bad requests until stopped; the rest is undecided: with
1,000 users the first weight of 1 % is ten people, who prove nothing in an hour, and the default policy then waits for a person. Larger
first weights (\`weightsPercent\`) or a longer \`maxWaitMs\` suit such endpoints; the table of the power at 25 % below shows what is seen there.

${parts.sticky}

## Where ours is worse

All cells of the tables above in which another rule has the better figure by more than the luck of the draw (3 points of a share,
5 % of a time, one request). A rule that is faster on equal versions pays for it elsewhere in its row.

${parts.whereWorse}

Beyond these figures: ours needs two arms at the same time, so a change that hurts both (a shared database) is seen by a fixed
threshold and not by us. It takes stable's requests that are still on their way for failures, because failures that show at different
speeds would otherwise pass for a difference (below), and so is late where all requests are slow. It holds for a person where
traffic is too thin to prove anything; the others decide, rightly or not.

## What the rule promises

Equal versions, ${requestsOfRun.toLocaleString('en')} requests a run, ${parts.runs.promised.toLocaleString('en')} runs each, looked at at every report: at most 5 % may be rolled back.

${parts.nulls}

### Why stable's requests under way count as events

Counting each failure as soon as it shows favours the arm that fails late. Counting a report interval once all of its requests
ended, and never before an earlier one, helps where one process counts; but each worker process of a router closes its own
intervals, and each stops just before a late failure: all of stable's failures ten seconds late and none of the candidate's is the
worst that we tried. So the rollback rule takes all requests that are a quarter of a second old, and those of stable that are
still on their way as events. Its evidence is then never above what it will be, however many workers count. Under a sticky key,
where users count and not requests, and for promotion it is still whole intervals.

${parts.delays}

The price is paid where all requests are slow, stable's good ones too: each of them counts against the suspicion until it ends.
Median time until a candidate is stopped, by \`error\` alone, one process counting:

${parts.slow}

### Power at a weight of 25 %

20,000 requests a run.

${parts.power}

### Time to promote an equal version, errors at 0.1 %

Median (95 %) until the bake, of the runs that came to it, without giving up after an hour.

${parts.promotion}
`;
