import { AppError, type FeedbackClaims, type FlagMetric } from '@perch/contracts';

/** What must be known of a rollout to take feedback about one of its replies. */
export interface FeedbackRollout {
  id: string;
  endpoint: string;
  state: string;
  over: boolean;
  sticky: boolean;
  /** Of the candidate on trial now. */
  epochs: number[];
  flags: FlagMetric[];
}

export interface TakenFeedback {
  flag: string;
  epoch: number;
  arm: 'stable' | 'candidate';
  /** -1: not under a sticky key. */
  bucket: number;
  requestId: string;
  /** Start of the stretch of time in which the reply was given; seconds. */
  cohortS: number;
  /** Until then the same request may not be counted again, seconds. */
  expiresS: number;
}

/** Clocks of routers and control planes differ by no more than this. */
const skewS = 60;
const dayS = 86_400;

/** Replies are told apart by time in so many stretches a window: what is judged is late by no more than one. */
export const cohortMs = (feedbackWithinMs: number): number =>
  1_000 * Math.min(600, Math.max(1, Math.floor(feedbackWithinMs / 50_000)));

const shown = (ms: number): string =>
  ms >= 7_200_000 ? `${Math.round(ms / 3_600_000)} h` : ms >= 120_000 ? `${Math.round(ms / 60_000)} min` : `${ms / 1_000} s`; // biome-ignore format: three units

/** Flags that wait for feedback. */
export const delayedFlags = (flags: readonly FlagMetric[]) =>
  flags.flatMap(({ name, feedbackWithinMs }) => (feedbackWithinMs === undefined ? [] : [{ name, feedbackWithinMs }]));

/**
 * What feedback with a token whose signature holds counts as. Throws `conflict` (the rollout or this candidate's trial is
 * over) or `invalid` (not a flag that waits for feedback, too late, from the future).
 */
export function judgeFeedback(
  rollout: FeedbackRollout,
  claims: FeedbackClaims,
  flag: string,
  nowMs: number,
): TakenFeedback {
  if (rollout.over)
    throw new AppError(
      'conflict',
      `token: its rollout is over (${rollout.state}); feedback counts while a rollout goes on`,
    );
  if (!rollout.epochs.includes(claims.e))
    throw new AppError('conflict', 'token: it is of a candidate that is not on trial any more, or not yet');
  const waiting = delayedFlags(rollout.flags);
  const known = waiting.find(({ name }) => name === flag);
  if (!known) {
    const names = waiting.map(({ name }) => name).join(', ') || 'none';
    throw new AppError(
      'invalid',
      `flag: ${flag} does not wait for feedback in this rollout; flags of its policy with feedbackWithinMs: ${names}`,
    );
  }
  if (claims.iat > nowMs / 1_000 + skewS)
    throw new AppError('invalid', 'token: it is of a reply to come; check the clocks of the routers');
  const ageMs = nowMs - claims.iat * 1_000;
  if (ageMs > known.feedbackWithinMs)
    throw new AppError(
      'invalid',
      `token: the reply is ${shown(Math.round(ageMs / 1_000) * 1_000)} old; the policy takes feedback on ${flag} within ${shown(known.feedbackWithinMs)}`,
    );
  const stretchS = cohortMs(known.feedbackWithinMs) / 1_000;
  return {
    flag,
    epoch: claims.e,
    arm: claims.a,
    bucket: claims.b,
    requestId: claims.q,
    cohortS: Math.floor(claims.iat / stretchS) * stretchS,
    expiresS: Math.ceil(Math.max(nowMs / 1_000 + dayS, claims.iat + known.feedbackWithinMs / 1_000 + skewS)),
  };
}
