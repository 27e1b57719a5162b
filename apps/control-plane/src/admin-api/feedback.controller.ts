import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { type Actor, type Feedback, feedback, feedbackResult } from '@perch/contracts';
import { FeedbackService } from '@perch/promotion';
import { Allow, Answers, By, requireEndpoint } from './http.ts';

@Controller('api/v1')
export class FeedbackController {
  constructor(private readonly feedback: FeedbackService) {}

  /** Whoever may call an endpoint may say what became of its replies. */
  @Post('feedback')
  @HttpCode(200)
  @Allow('inference')
  @Answers(
    feedbackResult,
    'Say later whether a reply deserved a flag, by the token that came with it; the first word stands',
  )
  take(@By() actor: Actor, @Body({ schema: feedback }) body: Feedback) {
    return this.feedback.take(body, (endpoint) => requireEndpoint(actor, endpoint));
  }
}
