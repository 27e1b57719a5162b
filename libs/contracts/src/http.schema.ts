import { z } from 'zod';
import { errorCodes } from './error.ts';

/** RFC 9457 problem details of the admin API, with Perch's code. */
export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    code: z.enum(errorCodes),
    detail: z.string(),
    requestId: z.string().optional(),
    /** One entry a bad field: its path and what was wanted. */
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'Problem' });
export type Problem = z.infer<typeof problem>;

export const paged = <T extends z.ZodType>(item: T) =>
  z.object({ items: z.array(item), nextCursor: z.string().nullable() });
export interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

/** One line of `GET /api/v1/events` (server-sent events; `event:` is the type, `id:` orders them). */
export const changeEvent = z
  .object({
    id: z.number().int(),
    type: z.string(),
    subject: z.string(),
    at: z.string(),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'ChangeEvent' });
export type ChangeEvent = z.infer<typeof changeEvent>;

/** Body of a router's error under /serve. OIP paths answer OIP's `{"error": "…"}` instead. */
export interface ServeError {
  error: { code: string; message: string; requestId: string };
}
