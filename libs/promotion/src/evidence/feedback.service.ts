import { Injectable } from '@nestjs/common';
import { AppError, type Feedback, type FeedbackResult } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';

const notYet = () => new AppError('not_available_yet', 'feedback is not taken yet');

/** What people say later about a reply, by the token that came with it. */
@Injectable()
export class FeedbackService {
  /** Base64 of the rollout's key (made at the first call): for `RouteRollout.feedbackKey` of policies with a delayed flag. */
  async keyFor(_tx: Tx, _rollout: string): Promise<string> {
    throw notYet();
  }

  /** `mayCall` throws when the caller's key does not reach the endpoint that the reply came from. */
  async take(_feedback: Feedback, _mayCall: (endpoint: string) => void): Promise<FeedbackResult> {
    throw notYet();
  }
}
