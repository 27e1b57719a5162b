import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { AppError } from '@perch/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { bearerOf } from '../admin-api/key.guard.ts';

/** `@Bearer() token: string`: what the caller shows; `unauthenticated` when nothing was sent. */
export const Bearer = createParamDecorator((_data: unknown, context: ExecutionContext): string => {
  const secret = bearerOf(context.switchToHttp().getRequest<FastifyRequest>().headers.authorization);
  if (!secret) throw new AppError('unauthenticated', 'this route wants a token: send "Authorization: Bearer <token>"');
  return secret;
});

/** `@Gone() gone: AbortSignal`: aborted when the caller hangs up. */
export const Gone = createParamDecorator((_data: unknown, context: ExecutionContext): AbortSignal => {
  const gone = new AbortController();
  context
    .switchToHttp()
    .getResponse<FastifyReply>()
    .raw.once('close', () => gone.abort());
  return gone.signal;
});

/** `after` and `lineage`: what the caller holds; `wait` in seconds. */
export const follow = z.object({
  after: z.coerce.number().int().min(0).optional(),
  lineage: z.uuid().optional(),
  wait: z.coerce.number().min(0).max(25).default(0),
});
export type Follow = z.output<typeof follow>;

export const followerOf = ({ after, lineage }: Follow) => ({ after: after ?? null, lineage: lineage ?? null });

/** The answer of a long poll: the document, or 304 when there is nothing new. */
export function answerPoll<T extends object>(reply: FastifyReply, answer: T | null): T | undefined {
  if (answer !== null) return answer;
  reply.code(304);
  return undefined;
}
