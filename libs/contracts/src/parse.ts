import { z } from 'zod';
import { AppError } from './error.ts';

export interface FieldFault {
  path: string;
  message: string;
}

export const fieldFaults = (error: z.ZodError): FieldFault[] =>
  error.issues.map((issue) => ({ path: issue.path.map(String).join('.'), message: issue.message }));

/** Parses or throws `invalid` with a message that names the thing and each field at fault (the first three in words). */
export function parseWith<T extends z.ZodType>(schema: T, value: unknown, thing: string): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = fieldFaults(result.error);
  const words = errors.slice(0, 3).map(({ path, message }) => (path ? `${path}: ${message}` : message));
  const more = errors.length > 3 ? ` (and ${errors.length - 3} more)` : '';
  throw new AppError('invalid', `${thing}: ${words.join('; ')}${more}`, { details: { errors } });
}

/** A schema's input as JSON Schema, for people and programs that are to see it; what JSON Schema cannot say is left open. */
export const jsonSchemaOf = (schema: z.ZodType): Record<string, unknown> =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Record<string, unknown>;
