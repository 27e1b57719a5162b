import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { IdempotencyService } from '@perch/access';
import { AppError } from '@perch/contracts';
import type { FastifyReply } from 'fastify';
import { lastValueFrom, type Observable, of } from 'rxjs';
import { IDEMPOTENT, type KnownRequest } from './http.ts';

/** Text of `Idempotency-Key`; undefined: not sent. */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header !== 'string' || !/^[\x21-\x7e]{1,200}$/.test(header))
    throw new AppError('invalid', 'Idempotency-Key: wants 1 to 200 visible ASCII characters');
  return header;
}

/** What the answer made, by its id or, where it has none, its name. */
const idOnly = (answer: unknown) => {
  const { id, name } = answer as { id?: string; name: string };
  return { id: id ?? name };
};
const shownAlready = ({ id }: { id: string }) =>
  new AppError(
    'conflict',
    `${id} was made by the first request, whose answer alone shows its secret; revoke ${id} and make another`,
    {
      details: { id },
    },
  );

/** Routes marked `@Idempotent()`: a request sent twice with one key is done once, and answered the same. */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
  constructor(
    private readonly idempotency: IdempotencyService,
    private readonly reflector: Reflector,
  ) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<KnownRequest>();
    const key = idempotencyKeyOf(request.headers['idempotency-key']);
    const marked = this.reflector.get<'kept' | 'shown-once' | undefined>(IDEMPOTENT, context.getHandler());
    if (key === undefined || !marked) return next.handle();
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    const kept = await this.idempotency.once(
      { actor: request.actor?.id ?? '', key },
      { method: request.method, url: request.url, body: request.body ?? null },
      {
        run: async () => ({
          status: reply.statusCode,
          answer: await lastValueFrom(next.handle(), { defaultValue: null }),
        }),
        keep: marked === 'shown-once' ? idOnly : undefined,
      },
    );
    if (kept.replayed && marked === 'shown-once') throw shownAlready(kept.answer as { id: string });
    if (kept.replayed) reply.header('idempotency-replayed', 'true');
    return of(kept.answer);
  }
}
