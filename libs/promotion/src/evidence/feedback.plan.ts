import { bucketCount, type FeedbackReading } from '@perch/contracts';
import type { Epoch } from '../rollout.entity.ts';
import { type BucketSet, emptyBuckets, joinBuckets } from '../statistics/buckets.decide.ts';
import { promotionBounds } from '../statistics/promotion-bounds.decide.ts';
import { sideOf, sizeOf } from './bucket-set.decide.ts';
import type { ArmTally, Tally } from './evidence.entity.ts';
import { bucketReading, candidateBuckets, type SetLookup } from './merge.plan.ts';
import type { OtherMetric } from './read.plan.ts';

/** Feedback on one arm of one epoch, and the replies that it could have been given on: only those old enough. */
export interface ArmFeedback {
  /** Replies that went well: what failed carries no token. */
  replies: number;
  given: number;
  raised: number;
  /** Under a sticky key. */
  repliesSet: BucketSet;
  givenSet: BucketSet;
  raisedSet: BucketSet;
}
export interface EpochFeedback {
  flag: string;
  epoch: number;
  stable: ArmFeedback;
  candidate: ArmFeedback;
}

type Arm = 'stable' | 'candidate';

const nothing: ArmFeedback = {
  replies: 0,
  given: 0,
  raised: 0,
  repliesSet: emptyBuckets(),
  givenSet: emptyBuckets(),
  raisedSet: emptyBuckets(),
};

/** The counts of replies are a moment behind what their users say of them. */
const tally = (n: number, x: number): Tally => ({ n: Math.max(n, x), x });
const add = (one: Tally, other: Tally): Tally => ({ n: one.n + other.n, x: one.x + other.x });

const both = (of: (arm: Arm) => Tally): ArmTally => ({ stable: of('stable'), candidate: of('candidate') });

/**
 * Whether feedback comes back more often for one arm: the confidence sequences of both rates, each at `a`, do not touch.
 * They hold at all times at once, so it may be asked at every look; with equal rates it is wrong at most 2·a of the time.
 */
export function feedbackDiffers({ stable, candidate }: ArmTally, a: number): boolean {
  const [one, other] = [promotionBounds(stable.x, stable.n, a), promotionBounds(candidate.x, candidate.n, a)];
  return one.lower > other.upper || other.lower > one.upper;
}

const percent = ({ n, x }: Tally) => `${n === 0 ? 0 : Number(((100 * x) / n).toPrecision(2))} %`;

/** Delayed metrics: only replies older than the window are judged, by what was said of them within it. */
export function feedbackMetric(
  flag: string,
  all: readonly EpochFeedback[],
  epochs: readonly Epoch[],
  options: { sticky: boolean; a: number },
): OtherMetric & { reading: FeedbackReading } {
  const found = new Map(all.filter((one) => one.flag === flag).map((one) => [one.epoch, one]));
  const of = (epoch: number | undefined, arm: Arm): ArmFeedback => found.get(epoch ?? -1)?.[arm] ?? nothing;
  const current = epochs.at(-1);
  const { counts, candidates } = options.sticky ? byBuckets(flag, epochs, of) : byRequests(flag, epochs, of);
  const rates = both((arm) => {
    const { replies, given, repliesSet, givenSet } = of(current?.epoch, arm);
    if (!options.sticky || !current) return tally(replies, given);
    const side = (set: BucketSet) => sizeOf(sideOf(set, arm, current.share));
    return tally(side(joinBuckets([repliesSet, givenSet])), side(givenSet));
  });
  const differs = feedbackDiffers(rates, options.a);
  const hold = differs
    ? `${flag}: feedback came back for ${percent(rates.candidate)} of the candidate's replies and ${percent(rates.stable)} of stable's; those who answer are not the same on both arms, so nothing advances on what they say.`
    : null;
  return { counts, candidates, hold, reading: { flag, ...rates, differs } };
}

function byRequests(flag: string, epochs: readonly Epoch[], of: (epoch: number | undefined, arm: Arm) => ArmFeedback) {
  const judged = (epoch: number | undefined, arm: Arm) => tally(of(epoch, arm).replies, of(epoch, arm).raised);
  const whole = (arm: Arm) => epochs.reduce((sum, { epoch }) => add(sum, judged(epoch, arm)), { n: 0, x: 0 });
  const counts = {
    metric: flag,
    epochs: epochs
      .filter(({ share }) => share > 0)
      .map(({ epoch, share }) => ({
        epoch,
        share,
        stableEvents: of(epoch, 'stable').raised,
        candidateEvents: of(epoch, 'candidate').raised,
      })),
    ...both((arm) => judged(epochs.at(-1)?.epoch, arm)),
    whole: both(whole),
  };
  return { counts, candidates: null };
}

function byBuckets(flag: string, epochs: readonly Epoch[], of: (epoch: number | undefined, arm: Arm) => ArmFeedback) {
  const setsOf: SetLookup = (epoch, arm) => {
    const { repliesSet, raisedSet } = of(epoch, arm);
    return { seen: joinBuckets([repliesSet, raisedSet]), hit: raisedSet };
  };
  return { counts: bucketReading(flag, epochs, setsOf), candidates: candidateBuckets(epochs, setsOf) };
}

/** Bucket of a token, or undefined where it names none. */
export const bucketOf = (bucket: number): number | undefined =>
  bucket >= 0 && bucket < bucketCount ? bucket : undefined;
