import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { AppError } from '@perch/contracts';
import type { AnswerText } from '@perch/fleet';
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

/**
 * `after` and `lineage`: what the caller holds; `wait` in seconds. `schema`: the newest one it reads, `holds`: that of what
 * it holds; programs from before there were two say nothing.
 */
export const follow = z.object({
  schema: z.coerce.number().int().min(1).default(1),
  holds: z.coerce.number().int().min(1).optional(),
  after: z.coerce.number().int().min(0).optional(),
  lineage: z.uuid().optional(),
  wait: z.coerce.number().min(0).max(25).default(0),
});
export type Follow = z.output<typeof follow>;

export const followerOf = ({ after, lineage, schema, holds }: Follow) => ({
  after: after ?? null,
  lineage: lineage ?? null,
  schema,
  holds,
});

/**
 * The answer of a long poll: the document with its revision as ETag, or 304 when there is nothing new. `stopping`: the
 * caller should not keep the connection, for the program waits for connections to end.
 */
export function answerPoll(reply: FastifyReply, answer: AnswerText | null, stopping: boolean): string | undefined {
  if (stopping) reply.header('connection', 'close');
  if (answer === null) {
    reply.code(304);
    return undefined;
  }
  const { lineage, revision } = answer.head;
  reply.header('etag', `"${lineage}.${revision}"`).header('content-type', 'application/json; charset=utf-8');
  return answer.text;
}
