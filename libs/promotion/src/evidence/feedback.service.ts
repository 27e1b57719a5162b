import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  AppError,
  type Feedback,
  type FeedbackResult,
  isSignedBy,
  peekFeedbackToken,
  readFeedbackKey,
} from '@perch/contracts';
import { rolloutWork } from '@perch/endpoints';
import { type CounterMetric, Metrics } from '@perch/platform';
import { Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { judgeFeedback } from './feedback.decide.ts';
import { FeedbackStore } from './feedback.store.ts';
import { isRolloutId } from './report.decide.ts';

const keyBytes = 32;
const calmMs = 1_000;

/** What people say later about a reply, by the token that came with it. */
@Injectable()
export class FeedbackService {
  private readonly heard: CounterMetric<'outcome'>;

  constructor(
    private readonly transactions: Transactions,
    private readonly store: FeedbackStore,
    private readonly work: WorkStore,
    metrics: Metrics,
  ) {
    this.heard = metrics.counter('perch_feedback_total', 'Feedback on replies: counted, repeated or refused.', [
      'outcome',
    ]);
  }

  /** Base64 of the rollout's key (made at the first call): for `RouteRollout.feedbackKey` of policies with a delayed flag. */
  async keyFor(tx: Tx, rollout: string): Promise<string> {
    return (await this.store.keyFor(tx, rollout, randomBytes(keyBytes))).toString('base64');
  }

  /**
   * Counts feedback once for each request and flag; the first one stands. `mayCall` throws when the caller's key does not
   * reach the endpoint that the reply came from. Throws `invalid` (no token, too late, not such a flag), `not_found`
   * (unknown rollout), `forbidden` (signed by another key), `conflict` (over).
   */
  async take(feedback: Feedback, mayCall: (endpoint: string) => void): Promise<FeedbackResult> {
    try {
      const result = await this.judge(feedback, mayCall);
      this.heard.add({ outcome: result.counted ? 'counted' : 'repeated' });
      return result;
    } catch (error) {
      if (error instanceof AppError && error.code !== 'unavailable') this.heard.add({ outcome: 'refused' });
      throw error;
    }
  }

  private async judge({ token, flag, value }: Feedback, mayCall: (endpoint: string) => void): Promise<FeedbackResult> {
    const claims = peekFeedbackToken(token);
    if (!claims)
      throw new AppError('invalid', 'token: not one that a reply carried; send x-perch-feedback-token as it came');
    return this.transactions.run(async (tx) => {
      const rollout = isRolloutId(claims.r) ? await this.store.rollout(tx, claims.r) : undefined;
      if (!rollout) throw new AppError('not_found', 'token: it is of a rollout that is not known, or not any more');
      if (!isSignedBy(token, readFeedbackKey(rollout.key.toString('base64'))))
        throw new AppError(
          'forbidden',
          'token: its signature is not the one of its rollout; it was changed or made up',
        );
      mayCall(rollout.endpoint);
      const taken = judgeFeedback(rollout, claims, flag, rollout.nowMs);
      if (rollout.sticky && taken.bucket < 0)
        return {
          counted: false,
          rollout: rollout.id,
          message: 'the request had no sticky key: nobody is judged by it',
        };
      const counted = await this.store.count(tx, rollout.id, taken, value);
      if (counted) await this.work.enqueue(tx, rolloutWork, rollout.endpoint, calmMs);
      const message = counted ? 'counted' : `feedback on ${flag} for this request came before; the first one stands`;
      return { counted, rollout: rollout.id, message };
    });
  }
}
