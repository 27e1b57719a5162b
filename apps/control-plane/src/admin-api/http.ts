/** What every admin controller needs: who may call, who calls, what is answered, and how lists and preconditions look. */
import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import { type Actor, AppError, type Page, type Role } from '@perch/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { inScopes } from './scope.decide.ts';

export { atLeast, inScopes } from './scope.decide.ts';

export const ALLOW = 'perch:allow';
export const ANSWERS = 'perch:answers';
export const IDEMPOTENT = 'perch:idempotent';

/** A request that the key guard let through. */
export interface KnownRequest extends FastifyRequest {
  actor?: Actor;
}

/**
 * The least role that may call, on a controller or a method (the method's wins). A route below /api/v1 without it wants
 * `admin`. Besides, a path parameter named `project`, `endpoint` or `split` must lie in the scopes of the caller's key.
 */
export const Allow = (role: Role): MethodDecorator & ClassDecorator => SetMetadata(ALLOW, role);

/** `@By() actor: Actor`: who calls. */
export const By = createParamDecorator((_data: unknown, context: ExecutionContext): Actor => {
  const { actor } = context.switchToHttp().getRequest<KnownRequest>();
  if (!actor) throw new AppError('unauthenticated', 'this route wants a key: send "Authorization: Bearer <key>"');
  return actor;
});

export interface Answer {
  schema: z.ZodType | null;
  summary: string;
}
/** What a route answers, for openapi.json; `null`: no body. */
export const Answers = (schema: z.ZodType | null, summary: string): MethodDecorator =>
  SetMetadata(ANSWERS, { schema, summary } satisfies Answer);

/**
 * On a POST that creates: `Idempotency-Key` is heard, so that a request sent twice is done once. `shown-once`: the
 * answer holds a secret and is not kept; the second request is a conflict that names what the first one made.
 */
export const Idempotent = (answer: 'kept' | 'shown-once' = 'kept'): MethodDecorator => SetMetadata(IDEMPOTENT, answer);

/** The ETag of a thing that counts its generations. */
export const etagOf = (generation: number): string => `"${generation}"`;
export const setEtag = (reply: FastifyReply, generation: number): void => void reply.header('etag', etagOf(generation));

/** Generation that `If-Match` names; undefined: the header was not sent, or is `*`. */
export function expectedGeneration(header: string | undefined): number | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  const match = /^\s*(?:W\/)?"(\d{1,15})"\s*$/.exec(header);
  if (!match)
    throw new AppError('invalid', `If-Match: wants one quoted generation such as "3", got ${header.slice(0, 40)}`);
  return Number(match[1]);
}
/** `@IfMatch() expected: number | undefined` */
export const IfMatch = createParamDecorator((_data: unknown, context: ExecutionContext) =>
  expectedGeneration(context.switchToHttp().getRequest<FastifyRequest>().headers['if-match']),
);

/** For names that stand in a body or in a list: path parameters `project` and `endpoint` are checked by the guard. */
export function requireProject(actor: Actor, project: string): void {
  if (!inScopes(actor.projects, project))
    throw new AppError('forbidden', `key ${actor.name} is not scoped to project ${project}`);
}
export function requireEndpoint(actor: Actor, endpoint: string): void {
  if (!inScopes(actor.endpoints, endpoint))
    throw new AppError('forbidden', `key ${actor.name} is not scoped to endpoint ${endpoint}`);
}

/** What every list hears. */
export const pageQuery = z.object({
  cursor: z.string().max(500).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});
export type PageQuery = z.output<typeof pageQuery>;

/** Cursors are opaque to callers: base64url of the last row's sort key. */
export const writeCursor = (value: string | number): string => Buffer.from(JSON.stringify(value)).toString('base64url');
export function readCursor(cursor: string | undefined): string | number | undefined {
  if (cursor === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    if (typeof value === 'string' || Number.isSafeInteger(value)) return value as string | number;
  } catch {
    // falls through to the same answer as any other text that we did not write
  }
  throw foreignCursor();
}
export function readTextCursor(cursor: string | undefined): string | undefined {
  const value = readCursor(cursor);
  if (typeof value === 'number') throw foreignCursor();
  return value;
}
export function readNumberCursor(cursor: string | undefined): number | undefined {
  const value = readCursor(cursor);
  if (typeof value === 'string') throw foreignCursor();
  return value;
}
const foreignCursor = () => new AppError('invalid', 'cursor: not one that this server gave; start again without it');

/** One page out of `limit + 1` rows read in order. */
export function pageOf<T>(rows: T[], limit: number, keyOf: (row: T) => string | number): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > limit && last !== undefined ? writeCursor(keyOf(last)) : null };
}

/** A page of what is known by its name: of the rows behind the cursor those that the caller's key may see. */
export async function pageByName<T extends { name: string }>(
  { endpoints }: Actor,
  { cursor, limit }: PageQuery,
  list: (after: string | null, limit: number) => Promise<T[]>,
): Promise<Page<T>> {
  const page = pageOf(await list(readTextCursor(cursor) ?? null, limit + 1), limit, ({ name }) => name);
  return { ...page, items: page.items.filter(({ name }) => inScopes(endpoints, name)) };
}
